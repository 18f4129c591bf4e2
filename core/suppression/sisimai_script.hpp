// The program for Perl that reads bounces by libsisimai-perl: a part of the binary, so that it always fits
// it.
#pragma once

namespace mailroom {

/// On stdin: the size of a mail in bytes, a newline, the mail; and so on. On stdout: a line `ready`, then a
/// line of JSON for each mail: an array with an object for each recipient.
constexpr const char* sisimai_script = R"perl(
use strict;
use warnings;
use JSON::PP ();
use Sisimai;

binmode STDIN;
binmode STDOUT;
$| = 1;
print "ready\n";
while (defined(my $size = <STDIN>)) {
    my $mail = '';
    while (length $mail < $size) {
        read(STDIN, $mail, $size - length $mail, length $mail) or exit;
    }
    my @read;
    eval {
        local $SIG{__WARN__} = sub { };
        # Version 5 has another name for it.
        my $make = Sisimai->can('rise') || Sisimai->can('make');
        my $data = Sisimai->$make(\$mail, delivered => 1);
        for my $one (@{ $data || [] }) {
            my $command = $one->can('smtpcommand') || $one->can('command');
            push @read, {
                address => $one->alias || $one->recipient->address, action => $one->action, status => $one->deliverystatus,
                diagnostic => $one->diagnosticcode, reason => $one->reason, command => $one->$command, code => $one->replycode,
            };
        }
    };
    print JSON::PP->new->ascii->encode(\@read), "\n";
}
)perl";

}  // namespace mailroom
