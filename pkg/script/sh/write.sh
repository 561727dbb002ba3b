# write PATH FLAG INTENT GUARD SIZE SUM MODE: the whole guarded write. What is
# refused is refused before the content is taken. INTENT is n, c or r, with i
# behind it to write through the open file.
at "$2" "$3"; facts "$k"; b=$s; regular "$b"; token "$b"; q=$p;
case $m in a*) b=;; esac;
case $4 in
=c*) [ -z "$s" ] || fail exists;;
=r*) [ -n "$b" ] || fail gone; [ "=$t" = "$5" ] || fail stale;;
esac;
case $4 in
*i)
  d=${k%/*}; [ -d "${d:-/}" ] || e=$(mkdir -p -- "$d" 2>&1) || fail sys "$e";
  e=$(dd of="$k" conv=fsync bs=128k 2>&1) || fail sys "$e";
  set -- "$6" "$7" "$8" $(cksum <"$k");
  [ "$1 $2" = "=$5 =$4" ] || fail short;
  [ "$3" = "=-" ] || chmod "${3#=}" -- "$k";
  facts "$k"; token "$s";;
*)
  open_stage "$1" "$b"; fill "$6" "$7"; [ -n "$b" ] || q=; set_mode "$8" "$q";
  case $4 in =r*) facts "$k"; token "$s"; [ "=$t" = "$5" ] || fail stale;; esac;
  publish "${4#=}";;
esac;
if [ -n "$b" ]; then x=update; else x=create; fi;
printf "ok\000%s\000%s\000%s\000" "$k" "$x" "$t";
