# move FROM TO FLAG: renames.
word "$2"; a=$v; word "$3"; b=$v;
[ -L "$a" ] || [ -e "$a" ] || fail notfound;
place "$a" "$b" "${4#=}";
printf "ok\000";
