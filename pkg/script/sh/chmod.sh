# chmod PATH MODE FLAG: sets permission bits, with "=r" of everything below, too.
word "$2"; r=; [ "$4" = "=r" ] && r=-R;
e=$(chmod $r "${3#=}" -- "$v" 2>&1) || fail sys "$e";
printf "ok\000";
