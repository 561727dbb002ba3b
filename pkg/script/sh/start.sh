# start MODE CWD GRACE BYTES ARG...: starts a program in our place. MODE is n (no
# input), p (input) or t (terminal). BYTES is not "=0" when so many bytes of
# shell text come first on the input: "export" and "unset" of the environment,
# "set" of the arguments, afield_u and afield_x: how many names of variables that
# no shell can hold stand before them, to unset and to set. Our own variables have
# a prefix, because one that came with the login would be passed on changed.
afield_n=$1 afield_m=$2 afield_d=$3 afield_g=${4#=} afield_i=${5#=} afield_q=$PATH; shift 5;
afield_w() { case $1 in =*) afield_v=${1#=};; *) afield_v=$(printf "%b." "${1#%}"); afield_v=${afield_v%.};; esac; };
afield_fail() { printf "%s E %s\n" "$afield_n" "$1"; exit 0; };
[ "$0" = afield ] || { afield_w "$0"; [ "$afield_v" = "$HOME" ] || afield_fail moved; };
afield_s() { shift 19; afield_t=$1; };
afield_t=0; afield_b=0;
[ -r /proc/$$/stat ] && { read -r afield_l </proc/$$/stat; afield_s ${afield_l##*) }; };

# afield_p = the parent of the program; false when the program has ended.
afield_up() {
  { read -r l </proc/$$/stat; } || return 1;
  set -- ${l##*) }; afield_p=$2; case $1 in Z|X|x) return 1;; esac;
};
# afield_l = the live members of our session but the watcher and its children. grep
# finds whom to read; a host without it has all of them read.
afield_live() {
  afield_l=; f=$(grep -Fls " $$ " /proc/[0-9]*/stat); [ $? -ne 127 ] || f=$(echo /proc/[0-9]*/stat);
  for f in $f; do
    { read -r l <$f; } 2>/dev/null || continue;
    p=${f#/proc/}; p=${p%/stat}; set -- ${l##*) };
    case $1 in Z|X|x) continue;; esac;
    [ "$4" = $$ ] && [ "$p" -ne "$afield_b" ] && [ "$2" -ne "$afield_b" ] && afield_l="$afield_l $p";
  done;
};
afield_all() { afield_live; for p in $afield_l; do kill "-$1" $p; done; };
# The watcher ends the session when the connection is gone. In mode n the server
# closes the input when the program has ended, too; then the watcher says on the
# error output who is left, so that nobody has to ask. Who is left is ended with
# the connection. It keeps no other copy of the outputs, or the channel would not
# close.
afield_watch() {
  exec 4>&2 >/dev/null 2>&1; trap "" HUP INT QUIT TERM TSTP PIPE; PATH=$afield_q;
  { read -r l </proc/self/stat; } && afield_b=${l%% *};
  if [ "$afield_m" = "=n" ]; then
    while read -r l <&3; do :; done;
    afield_up || { afield_live; [ -n "$afield_l" ] || afield_live; printf "%s Q%s\n" "$afield_n" "$afield_l" >&4; };
    exec 4>&-;
  else
    exec 4>&-; while afield_up && [ "$afield_p" = $PPID ]; do sleep 1; done;
  fi;
  afield_up || while [ -d /proc/$PPID ]; do afield_live; [ -n "$afield_l" ] || exit 0; sleep 1; done;
  afield_all TERM; kill -TERM -$$;
  i=0; while [ $i -lt "$afield_g" ] && { afield_live; [ -n "$afield_l" ]; }; do sleep 1; i=$((i+1)); done;
  afield_all KILL; afield_all KILL; kill -KILL -$$;
};

afield_j=$#;
while [ $afield_j -gt 0 ]; do
  afield_w "$1"; shift; set -- "$@" "$afield_v"; afield_j=$((afield_j-1));
done;
# Started before the environment of the program stands, so that only our own is in
# the watcher and in its sleep. In mode n it takes the input, so it comes later.
afield_guard() { afield_watch & afield_b=$!; };
[ "$afield_m" = "=n" ] || afield_guard 3</dev/null;

if [ "$afield_i" -gt 0 ]; then
  [ "$afield_m" = "=t" ] && { afield_y=$(stty -g); stty -echo -icanon min 1 time 0; printf "%s R\n" "$afield_n"; };
  afield_l=$(dd bs="$afield_i" count=1 iflag=fullblock 2>/dev/null) || afield_l=$(dd bs=1 count="$afield_i" 2>/dev/null);
  [ "$afield_m" = "=t" ] && stty "$afield_y";
  case $afield_l in *"#end") ;; *) exit 1;; esac;
  afield_u=0; afield_x=0; eval "$afield_l" || afield_fail spawn-failed;
  if [ $((afield_u+afield_x)) -gt 0 ]; then
    [ -x /usr/bin/perl ] || afield_fail unsupported;
    set -- /usr/bin/perl -e "my(\$u,\$x)=splice(@ARGV,0,2); delete \$ENV{\$_} for splice(@ARGV,0,\$u); my \$i=0; \$ENV{\$_}=delete \$ENV{q(AFIELD_X).++\$i} for splice(@ARGV,0,\$x); exec {\$ARGV[0]} @ARGV; exit 127" $afield_u $afield_x "$@";
  fi;
fi;

afield_w "$afield_d";
if [ -d "$afield_v" ]; then [ -x "$afield_v" ] || afield_fail cwd-denied;
elif [ -e "$afield_v" ]; then afield_fail cwd-not-directory;
else afield_fail cwd-missing; fi;
unset CDPATH; cd "$afield_v" || afield_fail cwd-denied;

# The program: a path as it stands, a bare name by the PATH that it will have.
afield_f=;
afield_try() {
  if [ -f "$1" ] && [ -x "$1" ]; then afield_f=$1; return 0; fi;
  if [ -e "$1" ]; then afield_z=program-not-executable; fi; return 1;
};
afield_z=program-not-found;
case $1 in
*/*) afield_try "$1" || afield_fail $afield_z;;
*)
  afield_p=${PATH-}:; [ -n "${PATH+y}" ] || afield_p=;
  while [ -n "$afield_p" ]; do
    afield_v=${afield_p%%:*}; afield_p=${afield_p#*:};
    afield_try "${afield_v:-.}/$1" && break;
  done;
  [ -n "$afield_f" ] || afield_fail program-not-found;
  case $1 in -*) shift; set -- "$afield_f" "$@";; esac;;
esac;

[ "$afield_m" = "=n" ] && { exec 3<&0 </dev/null; afield_guard; exec 3<&-; };
printf "%s S %s %s %s\n" "$afield_n" $$ "$afield_t" "$afield_b";
[ "$afield_m" = "=t" ] || printf "%s\n" "$afield_n" >&2;
exec "$@";
