# publish PATH FLAG GUARD FOLDER: publishes what upload has left. FLAG is c or n.
at "$2" =c; word "$5"; T=$v; S=$T/content;
[ -f "$S" ] || fail lost;
trap clean EXIT; staged;
if [ "$4" = "=" ]; then :; else facts "$k"; token "$s"; [ "=$t" = "$4" ] || fail stale; fi;
publish "${3#=}";
printf "ok\000%s\000\000%s\000" "$k" "$t";
