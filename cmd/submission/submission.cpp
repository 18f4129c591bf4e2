// mailroom submission: takes mails by SMTP, and stores each before it says 250. Describes its options, and
// runs the service that the settings describe.

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "cmd/command.hpp"
#include "cmd/submission/doors.hpp"
#include "cmd/submission/submission_pages.hpp"
#include "consumer/service_reporter.hpp"
#include "http_door/http_door.hpp"
#include "mail/configured_mail.hpp"
#include "process/stop_signal.hpp"
#include "resend_api/local_time.hpp"
#include "resend_api/resend_shape.hpp"
#include "sendmail/places.hpp"
#include "sendmail/spool_feeder.hpp"
#include "submission/home_watch.hpp"
#include "submission/service.hpp"

namespace mailroom::cmd {
namespace {

/// What is put in front of a mail, here and by the sender: send.max_size holds for all of it.
constexpr std::size_t room_for_headers = 4096;

std::string own_host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::size_t max_size(const config::Settings& settings) {
  const auto& given = settings.submission.max_size;
  if (given && *given > settings.send.max_size)
    throw Error(ExitCode::configuration, "submission.max_size is more than send.max_size",
                "what is larger would be stored, and rejected when it is sent: raise send.max_size too");
  return static_cast<std::size_t>(given.value_or(settings.send.max_size)) - room_for_headers;
}

/// `key` is an address or empty. Throws Error(configuration).
std::string address_in(const config::Settings& settings, std::string_view key) {
  const auto& value = config::setting_of(settings, key);
  if (value.text.empty()) return {};
  const auto parsed = mail::parse_address(value.text);
  if (const auto* address = std::get_if<mail::Address>(&parsed)) return address->text();
  throw Error(ExitCode::configuration,
              fmt::format("{} is no address: {}", key, std::get<mail::Refusal>(parsed).reason),
              "write local@domain");
}

submission::RoleTerms terms_of(const config::SubmissionSettings& given) {
  std::vector<std::string> senders;
  std::ranges::transform(given.senders, std::back_inserter(senders),
                         [](const std::string& sender) { return lower_case(sender); });
  return {.senders = senders,
          .header_options = given.header_options,
          .keeps_return_path = given.keeps_return_path,
          .connections = static_cast<std::size_t>(given.connections)};
}

submission::ServiceOptions options_of(const config::Settings& settings) {
  const auto& given = settings.submission;
  submission::ServiceOptions options;
  options.terms = {.host = own_host_name(),
                   .max_size = max_size(settings),
                   .max_recipients = static_cast<std::size_t>(given.max_recipients),
                   .local_to = address_in(settings, "submission.local_to"),
                   .local_from = address_in(settings, "submission.local_from"),
                   .timeout = given.timeout,
                   .login_timeout = std::min<Milliseconds>(given.timeout, std::chrono::minutes(1))};
  options.terms.data_timeout = options.terms.login_timeout;
  const auto mail = mail::parse_configured_mail(settings);
  if (options.terms.local_from.empty() && mail.from) options.terms.local_from = mail.from->address.text();
  options.database = {.target = db::configured_database(settings), .patience = given.patience};
  options.other_roles = terms_of(given);
  for (const auto& role : settings.submission_roles)
    options.roles[role.name] = terms_of(role.submission);
  options.connections = static_cast<std::size_t>(given.connections);
  options.connections_per_address = static_cast<std::size_t>(given.connections_per_address);
  options.memory = static_cast<std::size_t>(given.memory);
  options.login_cache = given.login_cache;
  options.tls = {.certificate = given.certificate,
                 .key = given.key,
                 .allows_readable_key = settings.signing.allow_readable_key};
  return options;
}

http_door::HttpOptions http_options_of(const config::Settings& settings, const OpenHttp& open,
                                       const submission::ServiceOptions& options) {
  if (!resend_api::TimeZone::find(settings.submission.timezone))
    throw Error(ExitCode::configuration,
                fmt::format("submission.timezone is '{}', which this system does not know",
                            shown_text(settings.submission.timezone)),
                "write a name such as Europe/Vienna, and install tzdata");
  for (const auto& host : settings.submission.attachment_hosts) {
    if (http_door::is_host_pattern(host)) continue;
    throw Error(
        ExitCode::configuration,
        fmt::format("submission.attachment_hosts has '{}', which is no name of a host", shown_text(host)),
        "write names such as files.shop.example, or *.shop.example for all below one");
  }
  const auto mail = mail::parse_configured_mail(settings);
  return {
      .fd = open.fd,
      .is_secure = open.is_secure,
      .timeout = options.terms.data_timeout,
      .connections = options.connections,
      .connections_per_address = options.connections_per_address,
      .database = {.target = options.database.target,
                   .patience = std::min<Milliseconds>(options.database.patience, std::chrono::seconds(20))},
      .timezone = settings.submission.timezone,
      .from = mail.from ? mail.from->address.text() : std::string(),
      .attachment_hosts = settings.submission.attachment_hosts};
}

/// What came by SMTP and over HTTP.
submission::ServiceCounts counts_of(const submission::Service& service, const http_door::HttpDoor* http) {
  auto counts = service.counts();
  if (http == nullptr) return counts;
  const auto more = http->counts();
  for (const auto& [role, mails] : more.accepted)
    counts.accepted[role] += mails;
  for (const auto& [status, answers] : more.answers)
    if (status >= 400) counts.refusals[status] += answers;
  counts.commits += more.commits;
  counts.connections += more.connections;
  return counts;
}

/// A descriptor for each client, and for sessions and files.
void raise_descriptors(int connections) {
  constexpr rlim_t others = 200;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(
      limit.rlim_max, std::max<rlim_t>(limit.rlim_cur, static_cast<rlim_t>(connections) + others));
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// A file that is wrong changes nothing.
void reload(submission::Service& service, const consumer::ServiceManager& manager, Context& context) {
  manager.reloading();
  try {
    service.reload(options_of(context.load()));
    context.log().info("reloaded the configuration");
  } catch (const Error& error) {
    context.log().error("goes on with the configuration before",
                        {{"reason", error.what()}, {"hint", error.hint()}});
  }
  manager.ready();
}

std::string status_of(const submission::ServiceCounts& counts) {
  std::int64_t accepted = 0;
  for (const auto& [role, mails] : counts.accepted)
    accepted += mails;
  return fmt::format("{} clients; {} mails stored", counts.connections, accepted);
}

/// What feeds the mails of submission.spool to the service; null without one. Throws Error(configuration).
std::unique_ptr<sendmail::SpoolFeeder> spool_of(const config::Settings& settings, Log& log) {
  const auto directory = sendmail::spool_directory(settings);
  if (directory.empty()) return nullptr;
  const auto door = sendmail::local_door(settings);
  if (door)
    return std::make_unique<sendmail::SpoolFeeder>(directory, door->role, settings.submission.aliases,
                                                   own_host_name(), log);
  if (!settings.submission.spool.empty()) sendmail::needed_local_door(settings);
  log.warn("nobody takes mails from the spool: submission.listen has no unix socket with a role",
           {{"spool", directory}});
  return nullptr;
}

ExitCode run_submission(Context& context) {
  const auto& settings = context.settings();
  auto& log = context.log();
  process::StopSignal stop;
  const consumer::ServiceManager manager(log);
  const auto options = options_of(settings);
  const auto open = open_doors(settings);
  raise_descriptors(settings.submission.connections);
  std::unique_ptr<db::Connection> connection;
  try {
    connection = context.connect_to_schema("submission", {}, &stop);
  } catch (const db::ConnectionLost&) {
    if (stop.requested()) return ExitCode::done;
    throw;
  }
  const submission::HomeWatch home(std::move(connection), options.database.target, log);
  const resend_api::ResendShape shape;
  std::unique_ptr<submission::Service> service;
  std::unique_ptr<http_door::HttpDoor> http;
  std::unique_ptr<SubmissionPages> pages;
  const auto counts = [&] { return counts_of(*service, http.get()); };
  const auto signalled = [&] {
    stop.drain();
    if (stop.take_reload()) reload(*service, manager, context);
    if (stop.requested()) manager.stopping();
    return stop.requested();
  };
  const auto spool = spool_of(settings, log);
  const auto turned = [&] {
    if (spool && !stop.requested())
      spool->turned([&](int fd, const std::string& role) { service->let_in(fd, role); });
    if (http) http->turned();
    if (manager.patience()) manager.alive();
    if (manager.is_present() && !stop.requested()) manager.show(status_of(counts()));
    if (pages) pages->turned();
  };
  service = std::make_unique<submission::Service>(
      options, open.doors,
      submission::ServiceSurroundings{.signal_fd = stop.fd(),
                                      .signalled = signalled,
                                      .closed = [&home] { return home.refusal(); },
                                      .turned = turned,
                                      .stopping =
                                          [&http] {
                                            if (http) http->stop();
                                          },
                                      .may_end = [&http] { return !http || http->may_end(); }},
      log);
  if (open.http)
    http = std::make_unique<http_door::HttpDoor>(http_options_of(settings, *open.http, options), shape,
                                                 *service, log);
  if (settings.metrics.listen) {
    pages = std::make_unique<SubmissionPages>(*settings.metrics.listen, counts);
    log.info("serving metrics", {{"at", pages->address().text()}});
  }
  for (const auto& door : open.doors)
    log.info("takes mails",
             {{"at", door.address.text()}, {"of", door.role.empty() ? "roles that log in" : door.role}});
  if (open.http) log.info("takes mails over HTTP", {{"at", open.http->address.text()}});
  manager.ready();
  service->run();
  log.info("stopped", {{"served", status_of(counts())}});
  return ExitCode::done;
}

}  // namespace

const Command submission_command{
    "submission", "take mails by SMTP, and store each before it is accepted",
    "Examples:\n"
    "  mailroom submission --listen 127.0.0.1:2525=shop   without logins, as shop\n"
    "  mailroom submission --listen 127.0.0.1:587 --certificate tls.crt --key tls.key\n",
    [](CommandSyntax&) -> Run { return [](Context& context) { return run_submission(context); }; },
    "Whatever can send mail sends through PostgreSQL: each mail that comes is stored as a message (raw), by one transaction for all "
    "clients of a moment, and mailroom send delivers it. 250 is answered after the commit, with the id of the message, and never "
    "before: a client that has it may forget the mail. The same bytes to the same recipients, sent again since the answer was lost, "
    "are stored once.\n\n"
    "The login is a role of PostgreSQL, by AUTH PLAIN or LOGIN over TLS (STARTTLS, or from the first byte at port 465 and after "
    "smtps://), and the server checks its password; the role needs the right of mailroom_submitter. At a loopback address or a "
    "unix socket with =ROLE behind it nobody logs in, and whoever connects mails as that role; =* at a unix socket is the user at "
    "its other end.\n\n"
    "While the database is down a mail waits for submission.patience, and then the client is told to try again (451). A copy of the "
    "database that mails nobody takes none. SIGHUP reads the certificate, limits and roles again; SIGTERM answers what is being "
    "stored, and tells the others to come back (421).\n\n"
    "The sockets that systemd passes are those of submission.listen, or each a place to log in if that is not set. "
    "docs/submission.md has the replies."};

}  // namespace mailroom::cmd
