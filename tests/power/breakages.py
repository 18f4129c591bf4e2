"""What the test of power cuts breaks on purpose."""

# What is broken on purpose, and which company it takes.
BREAKAGES = {
    'fsync': ('PostgreSQL flushes nothing', 'none'),
    'commit': ('PostgreSQL answers before it has flushed', 'none'),
    'disk': ('the disk answers a flush without doing it', 'none'),
    'barrier': ('the file system flushes nothing', 'none'),
    'answer': ('clients take a mail for stored before they are told so', 'http'),
    'directory': ('sendmail does not flush the directory of the spool', 'none'),
    'cancel': ('what is said to be cancelled is not', 'none'),
    'again': ('clients repeat what they were told is stored', 'none'),
    'bytes': ('two senders write a mail differently', 'none'),
    'program': ('programs acknowledge before they have handed over', 'lines'),
    'told': ('the program of outcomes does likewise', 'outcomes'),
    'report': ('a mail server does not flush a report', 'bounces'),
    'mailbox': ('a report is marked as seen, and nothing is on record', 'imap'),
    'forget': ('an address is taken for forgotten, and is not', 'forget'),
    'apply': ('a file of queues is taken for applied, and is not', 'apply'),
    'migrate': ('a schema is taken for migrated, and is not', 'migrate'),
    'standby': ('the standby follows no more before the cut', 'none'),
}
