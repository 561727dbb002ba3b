# space PATH: free KiB of the file system that holds it.
word "$2"; set -- $(df -Pk -- "$v" 2>/dev/null | tail -n 1);
printf "ok\000%s\000" "$4";
