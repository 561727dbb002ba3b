# write PATH FLAG INTENT GUARD SIZE MODE NEWMODE: the whole guarded write. What is
# refused is refused before the content is taken; else "ok" and the canonical path
# say that it is staged and may come. INTENT is n, c or r, with i behind it to
# write through the open file.
at "$2" "$3"; facts "$k"; b=$s; regular "$b"; token "$b"; q=$p;
case $m in a*) b=;; esac;
case $4 in
=c*) [ -z "$s" ] || fail exists;;
=r*) [ -n "$b" ] || fail gone; [ "=$t" = "$5" ] || fail stale;;
esac;
case $4 in
*i)
  parents; printf "ok\000%s\000" "$k"; S=$k; fill "$6";
  [ "$7" = "=-" ] || chmod "${7#=}" -- "$k";
  whole "$6";;
*)
  open_stage "$1" "$b"; printf "ok\000%s\000" "$k";
  fill "$6"; [ -n "$b" ] || q=; set_mode "$7" "$q" "$8"; whole "$6";
  case $4 in =r*) facts "$k"; token "$s"; [ "=$t" = "$5" ] || fail stale;; esac;
  publish "${4#=}";;
esac;
if [ -n "$b" ]; then x=update; else x=create; fi;
printf "ok\000%s\000%s\000%s\000" "$k" "$x" "$t";
