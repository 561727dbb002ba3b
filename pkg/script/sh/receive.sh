# receive ROOT: takes an archive from the input and publishes what is in its
# folder t, file by file or whole new directories, after the digests s of the files
# l were compared. d: files of t to leave out. x: entries of ROOT to remove. m: an
# archive of directories with modes and times. e ends it.
word "$2"; R=$v; umask 022;
[ -d "$R" ] || { e=$(mkdir -p -- "$R" 2>&1) || fail sys "$e"; };
cd "$R" 2>/dev/null || fail sys "Permission denied";
find . -maxdepth 1 -name ".afield-*.tmp" -mmin +1440 -exec rm -rf -- {} + 2>/dev/null;
T=.afield-$1.tmp; e=$(umask 077; mkdir -- "$T" 2>&1) || fail sys "$e";
clean() { chmod -R u+rwX -- "$T" 2>/dev/null; rm -rf -- "$T"; };
trap clean EXIT; trap "exit 1" HUP INT TERM PIPE;
e=$(tar --extract --preserve-permissions --no-same-owner --file=- --directory="$T" 2>&1) || fail sys "$e";
[ -f "$T/e" ] || fail short;
Q=????????????????????????????????????????????????????????????????;
( cd "$T" && [ -s l ] && xargs -0 sha256sum -- <l | while IFS= read -r h; do h=${h%% *}; x=${h%$Q}; printf "%s\012" "${h#"$x"}"; done; ) >"$T/g" 2>/dev/null;
cmp -s "$T/s" "$T/g" || fail lost;
[ -s "$T/d" ] && ( cd "$T" && xargs -0 rm -f -- <d );
[ -s "$T/x" ] && xargs -0 rm -rf -- <"$T/x";
S=$T/t; E=;
pub() {
  if [ -L "./$1" ]; then E="$E$1: a link is in the way$nl"; return; fi;
  if [ -d "./$1" ]; then :; elif [ -e "./$1" ]; then E="$E$1: a file is in the way$nl"; return;
  else e=$(mv -T -- "$S/$1" "./$1" 2>&1) || E=$E$e$nl; return; fi;
  for f in "$S/$1"/* "$S/$1"/.*; do
    case $f in */.|*/..) continue;; esac;
    if [ -L "$f" ]; then :; elif [ -d "$f" ]; then pub "${f#"$S/"}"; continue; elif [ -e "$f" ]; then :; else continue; fi;
    set -- "$@" "$f";
    if [ $# -gt 400 ]; then put "$@"; set -- "$1"; fi;
  done;
  [ $# -lt 2 ] || put "$@";
};
put() { D=$1; shift; e=$(mv -f -- "$@" "./$D/" 2>&1) || E=$E$e$nl; };
[ -d "$S" ] && pub .;
M=;
[ -f "$T/m" ] && { M=$(mktemp) && cat "$T/m" >"$M" || fail sys "cannot make a temporary file"; };
clean; trap - EXIT;
[ -z "$M" ] || { e=$(tar --extract --preserve-permissions --no-same-owner --file="$M" 2>&1) || E=$E$e$nl; rm -f -- "$M"; };
printf "ok\000%s\000" "$E";
