// Would a mail that a program submits by SMTP be taken, as whoever sent it says, and stored?

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "api_keys/api_key.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "db/binary_session.hpp"
#include "db/conninfo.hpp"
#include "doctor/subject.hpp"
#include "submission/door.hpp"
#include "submission/tls_server.hpp"

namespace mailroom::doctor {
namespace {

constexpr auto fix_of_pg_hba =
    "let pg_hba.conf ask these roles for a password (scram-sha-256) on the way that the service connects: until then their "
    "logins are refused with 454";
constexpr Milliseconds patience_of_server{5000};

/// Roles that may submit.
struct Submitters {
  std::vector<std::string> logins{};   ///< other than that of the session; a few of them
  std::optional<std::string> trial{};  ///< that the session can be; none: it cannot try
};

Submitters find_submitters(db::Connection& connection) {
  Submitters found;
  for (const auto& row : connection.run(R"(
SELECT r.rolname AS role, r.rolname = current_user AS is_own, pg_has_role(current_user, r.oid, 'MEMBER') AS may_be
FROM pg_roles r JOIN pg_class c ON c.oid = 'mailroom_messages'::regclass
  JOIN pg_proc p ON p.proname = 'mailroom_submit' AND p.pronamespace = c.relnamespace
WHERE r.rolcanlogin AND (NOT r.rolsuper OR r.rolname = current_user) AND has_function_privilege(r.oid, p.oid, 'EXECUTE')
ORDER BY is_own, role LIMIT 20)")) {
    if (!row.flag("is_own")) found.logins.push_back(row.text("role"));
    if (row.flag("may_be") && !found.trial) found.trial = row.text("role");
  }
  return found;
}

/// A guesser's password must be wrong.
Findings judge_logins(Subject& subject, const std::vector<std::string>& roles) {
  if (roles.empty())
    return {warning("no role that may log in has the right to submit, but the user of this session", {},
                    "GRANT mailroom_submitter TO ROLE; mailroom init --roles makes it")};
  std::vector<std::string> open;
  for (const auto& role : roles) {
    const db::BinarySession session(db::configured_database(*subject.settings), role,
                                    "no password of anybody", "mailroom doctor", patience_of_server);
    if (session.is_open()) open.push_back(role);
  }
  if (!open.empty())
    return {failure(fmt::format("any password is right for {}", joined(open, ", ")), {}, fix_of_pg_hba)};
  return {fine(fmt::format("{} may submit, and a wrong password is refused",
                           counted(static_cast<std::int64_t>(roles.size()), "role")))};
}

/// Stores a mail and takes it back.
Finding try_mail(db::Connection& connection, const std::optional<std::string>& role) {
  if (!role) return not_checked("the user of this session cannot be a role that may submit");
  bool is_stored = false;
  connection.dry_run([&](pqxx::work& transaction) {
    db::Connection::execute(transaction, "SET TRANSACTION READ WRITE");
    db::Connection::execute(transaction, "SET LOCAL ROLE " + transaction.quote_name(*role));
    db::Connection::execute(transaction,
                            "SELECT id FROM mailroom_submit(ARRAY[''], ARRAY['doctor@mailroom.example'], "
                            "ARRAY['From: doctor@mailroom.example\r\n\r\n'::bytea])");
    db::Connection::execute(transaction, "SET LOCAL ROLE NONE");
    is_stored = db::Connection::execute(
                    transaction,
                    "SELECT EXISTS (SELECT FROM mailroom_messages m JOIN tokens t ON t.message = m.id "
                    "WHERE m.recipients = ARRAY['doctor@mailroom.example'] AND m.raw IS NOT NULL)")
                    .value<bool>();
  });
  return is_stored ? fine("a mail was stored, and taken back")
                   : failure("a mail that is submitted gets no token", {});
}

/// 250 says that a mail is on the disk.
Findings judge_durability(db::Connection& connection) {
  Findings findings;
  for (const auto& row :
       connection.run("SELECT name, source = 'command line' AS is_given FROM pg_settings "
                      "WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY name")) {
    const auto name = row.text("name");
    const auto text =
        fmt::format("{} is off: a crash of the machine can lose or corrupt mails that were told 250", name);
    if (row.flag("is_given")) {
      findings.push_back(failure(text, {}, fmt::format("start the server without -c {}=off", name)));
    } else {
      findings.push_back(failure(
          text, status::fixes(status::FixKind::reset_setting,
                              {fmt::format("ALTER SYSTEM SET {} = on;", name), "SELECT pg_reload_conf();"})));
    }
  }
  // The sessions of the service set it for themselves.
  for (const auto& row : connection.run(R"(
SELECT quote_ident(r.rolname) AS role FROM pg_roles r JOIN pg_class c ON c.oid = 'mailroom_messages'::regclass
  JOIN pg_proc p ON p.proname = 'mailroom_submit' AND p.pronamespace = c.relnamespace
WHERE r.rolcanlogin AND NOT r.rolsuper AND has_function_privilege(r.oid, p.oid, 'EXECUTE') AND 'synchronous_commit=off' = ANY (r.rolconfig)
ORDER BY 1)")) {
    findings.push_back(failure(
        fmt::format(
            "synchronous_commit is off for {}: a crash can lose what it asks for by SQL after its COMMIT",
            row.text("role")),
        status::fixes(status::FixKind::reset_setting,
                      {fmt::format("ALTER ROLE {} RESET synchronous_commit;", row.text("role"))})));
  }
  return findings;
}

/// What raw mails cost the disks: nothing else of a message is as large.
Findings judge_volume(db::Connection& connection) {
  if (!connection.run("SELECT has_column_privilege('mailroom_messages', 'raw', 'SELECT')").value<bool>())
    return {};
  const auto row = connection.run(R"(
SELECT count(*) AS mails, coalesce(sum(pg_column_size(m.raw)), 0)::bigint / 1000000 AS megabytes
FROM mailroom_messages m WHERE m.created_at > now() - interval '1 day' AND m.raw IS NOT NULL)")[0];
  if (row.number("mails") == 0) return {};
  return {fine(fmt::format(
      "{} of the last day have {} MB, of which each is written about three times: WAL, table, backup",
      counted(row.number("mails"), "raw mail"), with_thousands(row.number("megabytes"))))};
}

Findings judge_certificate(const config::Settings& settings, Moment now) {
  constexpr std::chrono::days soon{14};
  const auto& given = settings.submission;
  if (given.certificate.empty()) return {};
  const submission::TlsServer tls({.certificate = given.certificate,
                                   .key = given.key,
                                   .allows_readable_key = settings.signing.allow_readable_key});
  const auto end = tls.valid_until();
  const auto text = fmt::format("the certificate is valid until {}", moment_text(end));
  if (end <= now)
    return {failure(fmt::format("the certificate has ended at {}", moment_text(end)), {},
                    "renew it, and send SIGHUP to the service")};
  if (end - now < soon) return {warning(text, {}, "renew it, and send SIGHUP to the service")};
  return {fine(text)};
}

bool connects(int fd, const config::ListenAddress& address) {
  if (address.is_unix()) {
    sockaddr_un place{};
    place.sun_family = AF_UNIX;
    address.path.copy(place.sun_path, sizeof place.sun_path - 1);
    return ::connect(fd, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0;
  }
  const auto port = htons(static_cast<std::uint16_t>(address.port));
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = port;
  if (inet_pton(AF_INET6, address.host.c_str(), &six.sin6_addr) == 1)
    return ::connect(fd, reinterpret_cast<const sockaddr*>(&six), sizeof six) == 0;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = port;
  inet_pton(AF_INET, address.host.c_str(), &four.sin_addr);
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&four), sizeof four) == 0;
}

/// What is said there at first; nullopt if nobody listens.
std::optional<std::string> greeting_at(const submission::Door& door) {
  const auto& address = door.address;
  const int family = address.is_unix()                             ? AF_UNIX
                     : address.host.find(':') != std::string::npos ? AF_INET6
                                                                   : AF_INET;
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::optional<std::string> said;
  if (fd >= 0 && connects(fd, address)) {
    said.emplace();
    pollfd awaited{fd, POLLIN, 0};
    std::array<char, 512> line{};
    if (!door.is_implicit_tls && poll(&awaited, 1, static_cast<int>(patience_of_server.count())) > 0)
      said->assign(line.data(),
                   static_cast<std::size_t>(std::max<ssize_t>(0, ::recv(fd, line.data(), line.size(), 0))));
  }
  if (fd >= 0) ::close(fd);
  return said;
}

Finding judge_door(const std::string& text) {
  const auto door = submission::parse_door(text);
  const auto at = door.address.text();
  const auto said = greeting_at(door);
  if (!said)
    return warning(fmt::format("nobody takes mails at {}", at), {},
                   "start mailroom-submission.service, or run mailroom submission");
  if (door.is_implicit_tls || said->starts_with("220 "))
    return fine(fmt::format("mails are taken at {}", at));
  return failure(fmt::format("{} does not take mails: {}", at,
                             said->empty() ? "no greeting" : shown_text(trimmed(*said))),
                 {});
}

/// Would a request over HTTP be taken, with each key that was not revoked?
Findings judge_keys(db::Connection& connection) {
  if (!connection.run("SELECT has_table_privilege('mailroom_keys', 'SELECT') AS may")[0].flag("may"))
    return {not_checked("only the owner of the tables reads the keys")};
  Findings findings;
  std::int64_t count = 0;
  for (const auto& key : api_keys::list_keys(connection)) {
    if (key.revoked_at) continue;
    ++count;
    if (!key.problem.empty())
      findings.push_back(
          failure(fmt::format("the key {} does not work: {}", shown_text(key.id), shown_text(key.problem)),
                  {}, "do that, or mailroom key revoke " + key.id));
  }
  if (count == 0) return {warning("there is no key for mails over HTTP", {}, "mailroom key create ROLE")};
  if (findings.empty())
    findings.push_back(fine(fmt::format("{} for mails over HTTP", counted(count, "key"))));
  return findings;
}

/// Before it has chosen the role of a key it must have the rights of none.
Findings judge_door_roles(db::Connection& connection) {
  Findings findings;
  for (const auto& row : connection.run(R"(
SELECT d.rolname AS role FROM pg_roles d
WHERE d.rolcanlogin AND NOT d.rolsuper AND has_function_privilege(d.oid, 'mailroom_use_keys(bytea[], text)', 'EXECUTE')
  AND has_function_privilege(d.oid, to_regproc('mailroom_send')::oid, 'EXECUTE')
  AND NOT pg_has_role(d.oid, (SELECT c.relowner FROM pg_class c WHERE c.oid = 'mailroom_messages'::regclass), 'MEMBER') ORDER BY 1)"))
    findings.push_back(warning(
        fmt::format(
            "{}, which takes requests over HTTP, has the rights of the roles of keys before it has chosen one",
            shown_text(row.text("role"))),
        {},
        fmt::format("ALTER ROLE {} NOINHERIT; on 16 and newer also GRANT its roles again WITH INHERIT FALSE",
                    row.text("role"))));
  return findings;
}

Finding judge_http(const std::string& text) {
  const auto address = config::parse_listen_address(text);
  if (!address)
    return failure(fmt::format("submission.http is '{}', which is no address", shown_text(text)), {});
  const auto said = greeting_at({.address = *address, .is_implicit_tls = true});
  return said ? fine(fmt::format("mails are taken over HTTP at {}", address->text()))
              : warning(fmt::format("nobody takes mails over HTTP at {}", address->text()), {},
                        "start mailroom-submission.service, or run mailroom submission");
}

/// Bounces of raw mails are recognized by their envelope alone.
Findings judge_bounces(const config::Settings& settings) {
  if (!settings.send.bounce_address.empty()) return {};
  return {warning(
      "send.bounce_address is not set: bounces of submitted mails go to the senders that programs choose", {},
      "set it, so that mailroom bounce reads them: docs/bounces.md")};
}

}  // namespace

Findings check_submission(Subject& subject) {
  if (!subject.settings_complete) return {};
  const auto& settings = *subject.settings;
  const bool has_smtp = !settings.submission.listen.empty() || !settings.submission.certificate.empty();
  const bool has_http = !settings.submission.http.empty();
  if (!has_smtp && !has_http) return {};
  auto findings = judge_certificate(
      settings, Moment(std::chrono::floor<std::chrono::microseconds>(subject.sources.now())));
  const auto add = [&](Findings more) { std::ranges::move(more, std::back_inserter(findings)); };
  for (const auto& text : settings.submission.listen)
    findings.push_back(judge_door(text));
  if (has_http) findings.push_back(judge_http(settings.submission.http));
  if (has_http && subject.connection && subject.schema_usable) {
    add(judge_keys(*subject.connection));
    add(judge_door_roles(*subject.connection));
  }
  if (!has_smtp) return findings;
  if (subject.connection && subject.schema_usable) {
    const auto found = find_submitters(*subject.connection);
    add(judge_logins(subject, found.logins));
    findings.push_back(try_mail(*subject.connection, found.trial));
    add(judge_durability(*subject.connection));
    add(judge_volume(*subject.connection));
  }
  add(judge_bounces(settings));
  return findings;
}

}  // namespace mailroom::doctor
