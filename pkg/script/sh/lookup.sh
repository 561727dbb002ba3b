# lookup NAME GIVEN PATH BASE: the first file of that name on the PATH that may be
# executed. GIVEN is "=y" when PATH is to be searched instead of the login's.
word "$5"; b=$v; word "$4"; p=$v; [ "$3" = "=y" ] || p=${PATH-};
word "$2"; n=$v; f=;
case $n in
/*) if [ -f "$n" ] && [ -x "$n" ]; then f=$n; else fail notexecutable; fi;;
*)
  p=$p:;
  while [ -n "$p" ]; do
    d=${p%%:*}; p=${p#*:};
    case $d in /*) ;; *) d=$b/$d;; esac;
    if [ -f "$d/$n" ] && [ -x "$d/$n" ]; then f=$d/$n; break; fi;
  done;;
esac;
[ -n "$f" ] || fail notfound;
printf "ok\000%s\000" "$f";
