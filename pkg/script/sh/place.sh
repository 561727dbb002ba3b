# place FROM TO FLAG: the renaming of the programs that move and copy. With n
# nothing that has the name is ever replaced: a directory claims the name first,
# anything else is linked to it.
place() {
  if [ -L "$1" ]; then x=f; elif [ -d "$1" ]; then x=d; else x=f; fi;
  if [ "$3" = n ]; then
    if [ $x = d ]; then
      e=$(mkdir -- "$2" 2>&1) || fail sys "$e";
      e=$(mv -fT -- "$1" "$2" 2>&1) || { rmdir -- "$2"; fail sys "$e"; };
    else
      e=$(ln -T -- "$1" "$2" 2>&1) || fail sys "$e";
      e=$(rm -f -- "$1" 2>&1) || fail sys "$e";
    fi;
  else
    if [ -L "$2" ]; then :; elif [ -d "$2" ]; then fail sys "Directory not empty"; elif [ $x = d ] && [ -e "$2" ]; then fail sys "File exists"; fi;
    e=$(mv -fT -- "$1" "$2" 2>&1) || fail sys "$e";
  fi;
};
