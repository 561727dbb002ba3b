# Head of the programs that stage a file.

# parents: makes the directories above k.
parents() {
  d=${k%/*}; [ -d "${d:-/}" ] && return 0;
  [ -e "$d" ] && fail sys "Not a directory";
  e=$(mkdir -p -- "$d" 2>&1) || fail sys "$e";
};

# open_stage NONCE: makes the parents of k, the private folder T beside it, and
# the empty file S in it. With "$2" the attributes of k are carried over.
open_stage() {
  parents; T=$d/.afield-$1.tmp; S=$T/content;
  e=$(umask 077; mkdir -- "$T" 2>&1) || fail sys "$e";
  trap clean EXIT; trap "exit 1" HUP INT TERM PIPE;
  [ -n "$2" ] || { ( umask 077; : >"$S" ); return 0; };
  cp --attributes-only --preserve=all -- "$k" "$S" 2>/dev/null || {
    rm -f -- "$S"; : >"$S"; chown -- "$o" "$S" 2>/dev/null;
  };
  chmod 600 -- "$S";
};
clean() { rm -rf -- "$T"; };

# fill SIZE: takes the content from the input up to its end. No content at all is
# announced by a line, because a cut connection looks like the end, too.
fill() {
  if [ "$1" = "=0" ]; then read -r x; [ "$x" = go ] || fail short; fi;
  e=$(dd of="$S" conv=fsync bs=128k 2>&1) || fail sys "$e";
};

# staged: j = the inode, y = the token, z = the size of the staged file.
staged() { facts "$S"; token "$s"; j=$i; y=$t; };

# whole SIZE: fails unless the staged file has the announced length, because a cut
# connection looks like the end of the content.
whole() { staged; [ "$1" = "=$z" ] || fail short; };

# set_mode MODE OLD NEW: the asked mode, else that of the replaced file, else that
# of new files, else what the umask leaves.
set_mode() {
  x=${1#=}; [ "$x" = - ] && x=${2:-${3#=}}; [ "$x" = - ] && x="=rw";
  e=$(chmod "$x" -- "$S" 2>&1) || fail sys "$e";
};

# publish FLAG: makes what staged has looked at visible. "c" never replaces anything.
# t = the token of the new file.
publish() {
  if [ "$1" = c ]; then
    e=$(ln -T -- "$S" "$k" 2>&1) || {
      if [ -L "$k" ] || [ -e "$k" ]; then
        if [ -L "$k" ]; then fail odd; elif [ -f "$k" ]; then fail exists; else fail odd; fi;
      fi;
      fail link "$e";
    };
  else
    if [ -L "$k" ]; then :; elif [ -d "$k" ]; then fail notregular; fi;
    e=$(mv -fT -- "$S" "$k" 2>&1) || { [ -d "$k" ] && fail notregular; fail sys "$e"; };
  fi;
  clean; trap - EXIT;
  facts "$k"; t=; [ -z "$s" ] || token "$s";
  [ "$i" = "$j" ] || t=$y;
};

# regular FACTS: fails if something that is no file and no link is there.
regular() { [ -z "$1" ] || case ${1%% *} in 8???|a???) ;; *) fail notregular;; esac; };
