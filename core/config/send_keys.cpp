// The keys of the section `send`: what takes the mails, what they are made of, and which are sent. Those of
// one provider's relays are in its directory of core/carriers.

#include <algorithm>
#include <iterator>

#include "config/key_table.hpp"

// Each is in the file keys.cpp of the provider's directory of core/carriers.
namespace mailroom::ses {
std::vector<config::KeyEntry> keys();
}
namespace mailroom::resend {
std::vector<config::KeyEntry> keys();
}

namespace mailroom::config {
namespace {

std::string parse_template_directory(const SettingValue& value) {
  if (value.text.empty()) refuse(value, "the path of a directory", "remove it to use the built-in templates");
  return parse_path(value);
}

std::vector<RelayTarget> parse_relay_list(const SettingValue& value) {
  return parse_relays(value.text);
}

/// The relays, and what each of them needs to let mails in.
std::vector<KeyEntry> relay_keys() {
  return {
      KeyEntry{
          "send.relay", "MAILROOM_SEND_RELAY", "",
          "what takes the mails: smtp://, smtps://, ses:// or resend://; several are separated by commas and tried in order",
          into(&RelayPath::targets, parse_relay_list)}
          .like("smtp://user@relay.example:587")
          .hides(Secrecy::url)
          .option("init send", "--relay URL", "send through this relay, or several separated by commas")
          .in_profiles(),
      KeyEntry{"send.password_file", "MAILROOM_SEND_PASSWORD_FILE", "",
               "file with the password for the user of the relay",
               into(&RelayPath::password_file, parse_path)}
          .secret_file("password")
          .read_by("smtp")
          .like("/etc/mailroom/relay-password")
          .option("init send", "--password-file FILE", "read the password of the relay from FILE")
          .in_profiles(),
      KeyEntry{
          "send.provider", "MAILROOM_SEND_PROVIDER", "",
          "provider behind a relay for SMTP, if its host does not show it: its events then show whose mail they are about",
          choice(&RelayPath::provider, {{"postmark", "postmark"},
                                        {"mailgun", "mailgun"},
                                        {"sendgrid", "sendgrid"},
                                        {"brevo", "brevo"},
                                        {"mailjet", "mailjet"},
                                        {"sparkpost", "sparkpost"},
                                        {"ses", "ses"},
                                        {"none", "none"}})}
          .read_by("smtp")
          .in_profiles(),
      KeyEntry{"send.token_file", "MAILROOM_SEND_TOKEN_FILE", "",
               "file with an OAuth 2 token instead, read at each login",
               into(&RelayPath::token_file, parse_path)}
          .secret_file("access token")
          .read_by("smtp")
          .in_profiles(),
      KeyEntry{"send.token_command", "MAILROOM_SEND_TOKEN_COMMAND", "",
               "shell command that prints the token; kept until it ends",
               as_written(&RelayPath::token_command)}
          .read_by("smtp")
          .in_profiles(),
      KeyEntry{
          "send.ca_file", "MAILROOM_SEND_CA_FILE", "",
          "file with the certificates that a relay's certificate is checked against, if not the system's",
          into(&RelayPath::ca_file, parse_path)}
          .file("certificates")
          .read_by("smtp ses resend")
          .in_profiles(),
  };
}

/// What holds for every relay, and what the mails are.
std::vector<KeyEntry> mail_keys() {
  using namespace std::chrono_literals;
  return {
      KeyEntry{"send.hello_name", "MAILROOM_SEND_HELLO_NAME", "", "name in EHLO, if not that of this host",
               as_written(&RelayPath::hello_name)}
          .for_every_relay()
          .read_by("smtp")
          .in_profiles(),
      KeyEntry{
          "send.plaintext_relay_for_tests", "MAILROOM_SEND_PLAINTEXT_RELAY_FOR_TESTS", "false",
          "send without TLS to a relay that is not on this host; only for a test set-up: links are readable on the way",
          into(&RelayPath::plaintext_for_tests, parse_switch)}
          .for_every_relay()
          .read_by("smtp"),
      KeyEntry{"send.from", "MAILROOM_SEND_FROM", "",
               "sender of the mails: an address, or a name and the address in angle brackets",
               as_written(&SendSettings::from)}
          .like("Example <no-reply@app.example>")
          .option("init send", "--from ADDRESS", "send from this address")
          .in_profiles(),
      KeyEntry{"send.reply_to", "MAILROOM_SEND_REPLY_TO", "",
               "where replies go, if not to the sender; several with commas between them",
               as_written(&SendSettings::reply_to)}
          .in_profiles(),
      KeyEntry{
          "send.bounce_address", "MAILROOM_SEND_BOUNCE_ADDRESS", "",
          "where bounces come back to, with {id} for what tells whose mail it was; not set: to the sender",
          as_written(&SendSettings::bounce_address)}
          .in_profiles(),
      KeyEntry{
          "send.unsubscribe_link", "MAILROOM_SEND_UNSUBSCRIBE_LINK", "",
          "where mailroom bounce --listen is reached from outside, for the links of mails with a topic: https and /{token} at the end",
          as_written(&SendSettings::unsubscribe_link)}
          .like("https://app.example/u/{token}")
          .in_profiles(),
      KeyEntry{
          "send.unsubscribe_mailto", "MAILROOM_SEND_UNSUBSCRIBE_MAILTO", "",
          "address that mailroom bounce reads, with {id}, to which a mail program may write instead; not set: none",
          as_written(&SendSettings::unsubscribe_mailto)}
          .like("unsubscribe+{id}@app.example")
          .in_profiles(),
      KeyEntry{
          "send.link", "MAILROOM_SEND_LINK", "",
          "link of mails that have one: a URL with {token}, and with {action} for activation, recovery or your own",
          as_written(&SendSettings::link)}
          .like("https://app.example/{action}?token={token}")
          .option("init send", "--link URL", "link in the mails, with {token} and {action}")
          .in_profiles(),
      KeyEntry{"send.templates", "MAILROOM_SEND_TEMPLATES", "",
               "directory of mail templates, which replace the built-in ones",
               into(&SendSettings::templates, parse_template_directory)}
          .option("send template", "--templates DIR", "use the templates in this directory")
          .in_profiles(),
      KeyEntry{"send.headers", "MAILROOM_SEND_HEADERS", "",
               "headers to add to each mail, each as Name: value", as_written(&SendSettings::headers)}
          .list()
          .in_profiles(),
      KeyEntry{"send.max_size", "MAILROOM_SEND_MAX_SIZE", "10MB",
               "size of the largest mail with its attachments, as the relay gets it, from 64kB to 100MB",
               into(&SendSettings::max_size, parse_size, 64 * 1024, 100 * 1024 * 1024)},
      KeyEntry{"send.connections", "MAILROOM_SEND_CONNECTIONS", "4",
               "number of mails that are delivered at the same time, from 1 to 64",
               into(&RelayPath::connections, parse_count, 1, 64)}
          .for_every_relay()
          .option("send", "--connections N", "deliver N mails at the same time"),
      KeyEntry{
          "send.batch_limit", "MAILROOM_SEND_BATCH_LIMIT", "10",
          "maximum number of tokens in progress, in two claims, from 1 to 10000; a crash mails at most that many twice",
          into(&SendSettings::batch_limit, parse_count, 1, 10'000)}
          .option("send", "--batch-limit N", "have at most N tokens in progress"),
      KeyEntry{"send.timeout", "MAILROOM_SEND_TIMEOUT", "30s",
               "how long a relay may take for an answer, from 1s to 10m; after the end of a mail at least 2m",
               into(&RelayPath::timeout, parse_interval, 1s, 10min)}
          .for_every_relay(),
      KeyEntry{
          "send.rate", "MAILROOM_SEND_RATE", "",
          "maximum rate at which one sender mails, such as 10/s; the rate of a queue holds for all senders together",
          into(&RelayPath::rate, parse_rate_value)}
          .for_every_relay()
          .in_profiles(),
      KeyEntry{"send.per_recipient", "MAILROOM_SEND_PER_RECIPIENT", "",
               "maximum number of mails of a queue to one address, such as 20/1h; further ones are cancelled",
               into(&SendSettings::per_recipient, parse_rate_value)},
      KeyEntry{"send.redirect_to", "MAILROOM_SEND_REDIRECT_TO", "",
               "on a staging system: the address that gets every mail in place of its recipient",
               as_written(&SendSettings::redirect_to)}
          .like("dev@app.example"),
      KeyEntry{
          "send.allow", "MAILROOM_SEND_ALLOW", "",
          "addresses and domains that get their mails all the same; without redirect_to all other mails are cancelled",
          as_written(&SendSettings::allow)}
          .list(),
      KeyEntry{
          "send.when_unknown", "MAILROOM_SEND_WHEN_UNKNOWN", "resend",
          "what to do with a mail that the relay may have accepted without an answer: resend (once) or hold",
          choice(&SendSettings::when_unknown,
                 {{"resend", WhenUnknown::resend}, {"hold", WhenUnknown::hold}})},
      KeyEntry{"send.supersede", "MAILROOM_SEND_SUPERSEDE", "true",
               "of several recovery tokens of an account that wait, mail only the newest",
               into(&SendSettings::supersede, parse_switch)},
      KeyEntry{
          "send.suppress_refused", "MAILROOM_SEND_SUPPRESS_REFUSED", "false",
          "suppress an address that a relay refuses for good, such as by 550 5.1.1, as if the mail had come back",
          into(&SendSettings::suppress_refused, parse_switch)},
      KeyEntry{"send.evidence", "MAILROOM_SEND_EVIDENCE", "true",
               "record the SHA-256 of each mail that a relay accepts, and the files of its template",
               into(&SendSettings::evidence, parse_switch)},
      KeyEntry{"send.throttled_by", "MAILROOM_SEND_THROTTLED_BY", "",
               "texts in a relay's answers that ask for a lower rate, besides those in docs/smtp.md",
               as_written(&RelayPath::throttled_by)}
          .for_every_relay()
          .read_by("smtp")
          .list()
          .in_profiles(),
  };
}

}  // namespace

std::vector<KeyEntry> send_keys() {
  auto keys = relay_keys();
  for (auto more : {ses::keys(), resend::keys(), mail_keys()})
    std::ranges::move(more, std::back_inserter(keys));
  return keys;
}

}  // namespace mailroom::config
