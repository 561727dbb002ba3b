# lstat PATH: the facts of the entry itself and the text of a link. The directory
# above is made canonical.
word "$2"; y=${v##*/}; canon "${v%/*}" || fail sys "Too many levels of symbolic links";
k=${k%/}/$y; facts "$k"; x=;
if [ -L "$k" ]; then newline; x=$(readlink "$k"; printf .); x=${x%.}; x=${x%"$nl"}; fi;
[ -n "$s" ] || reach "$k";
printf "ok\000%s\000%s\000%s\000" "$k" "$s" "$x";
