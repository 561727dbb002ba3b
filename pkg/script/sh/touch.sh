# touch PATH TIME FLAG: sets the time of modification, "=-" is now; with "=c"
# nothing is made.
word "$2"; k=$v; y=n; [ -e "$k" ] || y=y;
[ "$4$y" = "=cy" ] && fail notfound;
if [ "$3" = "=-" ]; then e=$(touch -- "$k" 2>&1) || fail sys "$e";
else e=$(touch -d "@${3#=}" -- "$k" 2>&1) || fail sys "$e"; fi;
printf "ok\000%s\000" $y;
