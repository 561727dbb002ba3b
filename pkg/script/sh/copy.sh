# copy FROM TO FLAG: copies with modes and times, staged beside the target.
word "$2"; a=$v; word "$3"; b=$v; y=${4#=};
[ -L "$a" ] || [ -e "$a" ] || fail notfound;
if [ -L "$a" ]; then :; elif [ -d "$a" ]; then y=n; elif [ -f "$a" ]; then :; else fail notregular; fi;
T=${b%/*}/.afield-$1.tmp; e=$(umask 077; mkdir -- "$T" 2>&1) || fail sys "$e";
clean() { chmod -R u+rwX -- "$T" 2>/dev/null; rm -rf -- "$T"; };
trap clean EXIT; trap "exit 1" HUP INT TERM PIPE;
e=$(cp -RPp -- "$a" "$T/content" 2>&1) || fail sys "$e";
find "$T/content" -name ".afield-*.tmp" -prune -exec rm -rf -- {} + 2>/dev/null;
place "$T/content" "$b" "$y";
printf "ok\000";
