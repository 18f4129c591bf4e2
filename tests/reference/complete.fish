# complete.fish SCRIPT: completes each line of stdin, with the cursor at its end, as fish does with SCRIPT loaded.
# Prints the candidates of each line on one line, separated by spaces.
source $argv[1]
while read -l line
    set -l word (string split -r -m 1 ' ' -- $line)[-1]
    set -l candidates (complete -C $line | string replace -r '\t.*' '')
    # Since version 4, fish also returns candidates that merely resemble the word; the prompt shows them when no
    # candidate begins with it.
    set -l beginning (string match -- "$word*" $candidates)
    set -q beginning[1]; and set candidates $beginning
    echo (string replace -r '^--[^=]*=' '' -- $candidates | string replace -r '/$' '')
end
