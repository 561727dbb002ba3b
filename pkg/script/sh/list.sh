# list PATH FLAG: the names; the facts of what they lead to, in the same order;
# the canonical paths of the links.
at "$2" "$3";
if [ -d "$k" ]; then
  [ -r "$k" ] && [ -x "$k" ] || fail sys "Permission denied";
else
  facts "$k" -L; [ -n "$s" ] || fail notfound; fail notdir;
fi;
printf "ok\000%s\000" "$k";
d=${k%/}/;
{ e=$(find "$d" -mindepth 1 -maxdepth 1 -print0 2>&1 >&3 3>&-) || :; } 3>&1;
[ -z "$e" ] || { printf "\000"; fail sys "$e"; };
printf "\000";
find "$d" -mindepth 1 -maxdepth 1 -exec stat -L -c "%f %d %i %s %y %z %n" -- {} + 2>/dev/null;
printf "\000";
for f in "$d"* "$d".*; do
  [ -L "$f" ] || continue;
  case $f in */.|*/..) continue;; esac;
  canon "$f" && printf "%s\000%s\000" "${f##*/}" "$k";
done;
printf "\000end\000";
