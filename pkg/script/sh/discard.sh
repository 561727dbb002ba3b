# discard FOLDER: removes what upload has left.
word "$2"; case $v in */.afield-*.tmp) e=$(rm -rf -- "$v" 2>&1) || fail sys "$e";; esac;
printf "ok\000";
