# stat PATH FLAG: the canonical path and the facts of what is there.
at "$2" "$3"; facts "$k" -L;
printf "ok\000%s\000%s\000\000" "$k" "$s";
