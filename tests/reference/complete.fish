# complete.fish SCRIPT: completes each line of stdin, with the cursor at its end, as fish does with SCRIPT
# loaded. Prints a line each: the candidates with a space between them.
source $argv[1]
while read -l line
    set -l candidates (complete -C $line | string replace -r '\t.*' '' | string replace -r '^--[^=]*=' '')
    echo (string replace -r '/$' '' -- $candidates)
end
