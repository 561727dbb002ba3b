# Head of the programs that stage a file.

# open_stage NONCE: makes the parents of k, the private folder T beside it, and
# the empty file S in it. With "$2" the attributes of k are carried over.
open_stage() {
  d=${k%/*};
  [ -d "${d:-/}" ] || e=$(mkdir -p -- "$d" 2>&1) || fail sys "$e";
  T=$d/.afield-$1.tmp; S=$T/content;
  e=$(umask 077; mkdir -- "$T" 2>&1) || fail sys "$e";
  trap clean EXIT; trap "exit 1" HUP INT TERM PIPE;
  [ -n "$2" ] || { : >"$S"; return 0; };
  cp --attributes-only --preserve=all -- "$k" "$S" 2>/dev/null || {
    rm -f -- "$S"; : >"$S"; chown -- "$o" "$S" 2>/dev/null;
  };
  chmod 600 -- "$S";
};
clean() { rm -rf -- "$T"; };

# fill SIZE SUM: takes the content from the input up to its end; a cut
# connection looks like the end, so both must be what was announced.
fill() {
  e=$(dd of="$S" conv=notrunc,fsync bs=128k 2>&1) || fail sys "$e";
  set -- "$1" "$2" $(cksum <"$S");
  [ "$1" = "=-" ] || [ "$1 $2" = "=$4 =$3" ] || fail short;
};

# set_mode MODE: the asked mode, else that of the replaced file.
set_mode() {
  if [ "$1" = "=-" ]; then [ -z "$2" ] || chmod "$2" -- "$S"; else chmod "${1#=}" -- "$S"; fi;
};

# publish FLAG: "c" never replaces anything. t = the token of the new file.
publish() {
  facts "$S"; token "$s"; j=$i; y=$t;
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
