# link TEXT PATH: makes a symbolic link.
word "$2"; a=$v; word "$3";
e=$(ln -sT -- "$a" "$v" 2>&1) || fail sys "$e";
printf "ok\000";
