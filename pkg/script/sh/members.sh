# members LEADER START WATCHER: the ids of the live members.
tree "${2#=}" "${3#=}" "${4#=}";
printf "ok\000%s\000" "$l";
