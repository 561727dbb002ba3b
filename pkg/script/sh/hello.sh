# hello: the home directory, the directory we stand in, and what the world has.
x=; s=$(stat -L -c %y -- / 2>/dev/null); case $s in *:*.*) x=stat;; esac;
s=$(printf x | cksum 2>/dev/null); case $s in *" 1") x=$x:cksum;; esac;
[ -r /proc/self/stat ] && x=$x:proc;
printf "ok\000%s\000%s\000%s\000%s\000" "$HOME" "$(pwd -P)" "$x" "$(date +%s)";
