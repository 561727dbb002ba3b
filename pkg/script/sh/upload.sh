# upload PATH MODE KEEP NEWMODE: stages content of unknown length and leaves it staged.
# KEEP is "=y" when the attributes of the file that is there are carried over.
at "$2" =c; facts "$k"; regular "$s"; token "$s"; q=$p; b=;
if [ "$4" = "=y" ]; then b=$s; fi;
case $m in a*) b=;; esac;
open_stage "$1" "$b"; fill =-; [ -n "$b" ] || q=; set_mode "$3" "$q" "$5"; staged;
trap - EXIT;
printf "ok\000%s\000%s\000" "$T" "$z";
