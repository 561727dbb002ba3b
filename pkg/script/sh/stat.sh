# stat PATH FLAG: the canonical path, the facts of what is there, why nothing is.
at "$2" "$3"; facts "$k" -L;
printf "ok\000%s\000%s\000%s\000" "$k" "$s" "$a";
