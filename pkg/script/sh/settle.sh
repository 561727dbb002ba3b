# settle PATH FOLDER: after a lost connection. Removes what is staged, so that
# nothing can be published any more, and tells what stands under the path: was
# anything staged, the facts, length and sum.
at "$2" =c; word "$3"; x=no;
if [ -d "$v" ]; then x=staged; e=$(rm -rf -- "$v" 2>&1) || fail sys "$e"; fi;
facts "$k"; e=;
case $s in 8*) e=$(cksum <"$k");; esac;
printf "ok\000%s\000%s\000%s\000%s\000" "$k" "$s" "$x" "$e";
