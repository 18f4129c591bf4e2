// The keys of the service that takes mails by SMTP, a part of the table of keys.

#include "config/key_table.hpp"
#include "config/parse_value.hpp"

namespace mailroom::config {
namespace {

using namespace std::chrono_literals;

constexpr int kilobyte = 1024;
constexpr int megabyte = 1024 * kilobyte;

}  // namespace

std::vector<KeyEntry> submission_keys() {
  return {
      KeyEntry{
          "submission.listen", "MAILROOM_SUBMISSION_LISTEN", "",
          "where mails are taken by SMTP: addresses, each with =ROLE behind it if who connects there mails as that role without a login",
          as_written(&SubmissionSettings::listen)}
          .list()
          .needs_restart()
          .option("submission", "--listen ADDRESS",
                  "take mails here: 127.0.0.1:587, 127.0.0.1:25=ROLE, or the path of a unix socket")
          .like("['127.0.0.1:587']"),
      KeyEntry{
          "submission.http", "MAILROOM_SUBMISSION_HTTP", "",
          "where mails are taken over HTTP: an address or the path of a unix socket; elsewhere than on loopback with the certificate",
          as_written(&SubmissionSettings::http)}
          .needs_restart()
          .option("submission", "--http ADDRESS",
                  "take mails over HTTP here: 127.0.0.1:8587, or the path of a unix socket")
          .like("127.0.0.1:8587"),
      KeyEntry{"submission.timezone", "MAILROOM_SUBMISSION_TIMEZONE", "UTC",
               "time zone of times without one that come over HTTP, such as Europe/Vienna",
               as_written(&SubmissionSettings::timezone)}
          .needs_restart(),
      KeyEntry{
          "submission.attachment_hosts", "MAILROOM_SUBMISSION_ATTACHMENT_HOSTS", "",
          "hosts of which files are fetched that requests over HTTP name by path: files.shop.example, *.shop.example",
          as_written(&SubmissionSettings::attachment_hosts)}
          .list()
          .needs_restart()
          .like("[files.shop.example]"),
      KeyEntry{"submission.certificate", "MAILROOM_SUBMISSION_CERTIFICATE", "",
               "file with the certificate for TLS and those above it, in PEM; a login needs TLS",
               into(&SubmissionSettings::certificate, parse_path)}
          .file("certificates")
          .option("submission", "--certificate FILE", "read the certificate for TLS from FILE"),
      KeyEntry{"submission.key", "MAILROOM_SUBMISSION_KEY", "",
               "file with the private key of the certificate", into(&SubmissionSettings::key, parse_path)}
          .secret_file("private key")
          .option("submission", "--key FILE", "read the private key of the certificate from FILE"),
      KeyEntry{"submission.connections", "MAILROOM_SUBMISSION_CONNECTIONS", "1000",
               "how many clients may be connected, from 1 to 100000",
               into(&SubmissionSettings::connections, parse_count, 1, 100'000)}
          .for_roles(),
      KeyEntry{"submission.connections_per_address", "MAILROOM_SUBMISSION_CONNECTIONS_PER_ADDRESS", "100",
               "how many of them from one address, from 1 to 100000",
               into(&SubmissionSettings::connections_per_address, parse_count, 1, 100'000)},
      KeyEntry{"submission.max_size", "MAILROOM_SUBMISSION_MAX_SIZE", "",
               "maximum size of a mail as it comes, from 64kB to 100MB; without it, that of send.max_size",
               into(&SubmissionSettings::max_size, parse_size, 64 * kilobyte, 100 * megabyte)},
      KeyEntry{"submission.max_recipients", "MAILROOM_SUBMISSION_MAX_RECIPIENTS", "1000",
               "maximum number of recipients of a mail, from 100 to 1000",
               into(&SubmissionSettings::max_recipients, parse_count, 100, 1000)},
      KeyEntry{
          "submission.memory", "MAILROOM_SUBMISSION_MEMORY", "256MB",
          "memory for mails that are being taken, from 1MB to 2047MB; beyond it clients are told to try again",
          into(&SubmissionSettings::memory, parse_size, megabyte, 2047 * megabyte)},
      KeyEntry{
          "submission.timeout", "MAILROOM_SUBMISSION_TIMEOUT", "5m",
          "how long a client may take for a command, from 1s to 1h; before the login, for 600 kB of a mail and for a request over HTTP, at most a minute",
          into(&SubmissionSettings::timeout, parse_interval, 1s, 1h)},
      KeyEntry{"submission.patience", "MAILROOM_SUBMISSION_PATIENCE", "20s",
               "how long a mail whose bytes are here waits for the database, from 1s to 10m",
               into(&SubmissionSettings::patience, parse_interval, 1s, 10min)}
          .needs_restart(),
      KeyEntry{"submission.login_cache", "MAILROOM_SUBMISSION_LOGIN_CACHE", "5m",
               "how long a password that was right is not asked of PostgreSQL again, from 0s to 1d",
               into(&SubmissionSettings::login_cache, parse_interval, 0s, 24h)}
          .needs_restart(),
      KeyEntry{
          "submission.local_to", "MAILROOM_SUBMISSION_LOCAL_TO", "",
          "address that gets the mails to recipients without a domain, such as root; without it they are refused",
          as_written(&SubmissionSettings::local_to)},
      KeyEntry{
          "submission.local_from", "MAILROOM_SUBMISSION_LOCAL_FROM", "",
          "address in place of a sender without a domain, such as that of cron; without it, the address of send.from",
          as_written(&SubmissionSettings::local_from)},
      KeyEntry{
          "submission.spool", "MAILROOM_SUBMISSION_SPOOL", "",
          "directory where mailroom sendmail leaves mails while it cannot submit; without it, /var/spool/mailroom if there",
          into(&SubmissionSettings::spool, parse_path)}
          .needs_restart()
          .like("/var/spool/mailroom"),
      KeyEntry{"submission.aliases", "MAILROOM_SUBMISSION_ALIASES", "/etc/aliases",
               "file in which mailroom sendmail looks recipients without a domain up",
               into(&SubmissionSettings::aliases, parse_path)},
      KeyEntry{"submission.senders", "MAILROOM_SUBMISSION_SENDERS", "",
               "addresses and @domains that mails may be from, in the envelope and in From; without it, any",
               as_written(&SubmissionSettings::senders)}
          .list()
          .for_roles(),
      KeyEntry{
          "submission.return_path", "MAILROOM_SUBMISSION_RETURN_PATH", "replace",
          "keep: bounces go to the sender of the mail, for a program that reads its own; replace: to send.bounce_address, if that is set",
          choice(&SubmissionSettings::keeps_return_path, {{"replace", false}, {"keep", true}})}
          .for_roles(),
      KeyEntry{
          "submission.header_options", "MAILROOM_SUBMISSION_HEADER_OPTIONS", "true",
          "whether headers such as X-Mailroom-Key mean something; false for what forwards mails of others",
          into(&SubmissionSettings::header_options, parse_switch)}
          .for_roles(),
  };
}

}  // namespace mailroom::config
