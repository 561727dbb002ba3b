# mkdir PATH FLAG MODE: makes a directory; with the flag "=p" what is missing above
# it, too, and one that is there is no failure.
word "$2"; k=$v; y=y;
if [ "$3" = "=p" ]; then
  [ -d "$k" ] && y=n;
  e=$(mkdir -p -- "$k" 2>&1) || fail sys "$e";
else e=$(mkdir -- "$k" 2>&1) || fail sys "$e"; fi;
if [ "$4" = "=-" ] || [ $y = n ]; then :; else e=$(chmod "${4#=}" -- "$k" 2>&1) || fail sys "$e"; fi;
printf "ok\000%s\000" $y;
