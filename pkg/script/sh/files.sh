# Head of the programs for files.
LC_ALL=C; TZ=UTC0; export LC_ALL TZ; unset CDPATH IFS;
F="%f %d %i %s %y %z %a %u %g %U/%G";

# facts PATH [-L]: s = the facts, empty if nothing is there, and then a = notdir
# if that is because something above is no directory.
facts() {
  a=; s=$(stat $2 -c "$F" -- "$1" 2>&1) && return 0;
  case $s in *": Not a directory") s=; a=notdir; return 0;; *": No such file or directory") s=; return 0;; esac;
  fail sys "$s";
};

# token FACTS: the version token t, the mode m in hex, the inode i, the size z,
# the permissions p without the special bits, the owner o.
token() {
  set -- $1; t=$2:$3:$4:$5T$6:$8T$9; m=$1; i=$2:$3; z=$4; o=${12}:${13};
  p=000${11}; p=${p#${p%???}};
};

# canon PATH: k = the path with all links followed, missing parts kept. It is
# false for a loop.
canon() {
  k=; r=$1; n=0;
  while [ -n "$r" ]; do
    case $r in /*) r=${r#/}; continue;; esac;
    c=${r%%/*};
    case $r in */*) r=${r#*/};; *) r=;; esac;
    case $c in .) continue;; ..) k=${k%/*}; continue;; esac;
    if [ -L "$k/$c" ]; then
      n=$((n+1)); [ $n -le 40 ] || return 1;
      newline; x=$(readlink "$k/$c"; printf .); x=${x%.}; x=${x%"$nl"};
      case $x in /*) k=;; esac;
      r=$x/$r;
    else k=$k/$c; fi;
  done;
  [ -n "$k" ] || k=/;
};

# reach PATH: fails if a directory above it may not be searched.
reach() {
  [ -e "$1" ] && return 0;
  x=$1;
  while [ -n "$x" ]; do
    x=${x%/*};
    if [ -d "${x:-/}" ]; then [ -x "${x:-/}" ] || fail sys "Permission denied"; return 0; fi;
  done;
};

# at WORD FLAG: k = the path of a word, canonical already if the flag is "=c".
at() {
  word "$1"; k=$v;
  [ "$2" = "=c" ] || { canon "$v" || fail sys "Too many levels of symbolic links"; reach "$k"; };
};
