// Changes nothing that is there: neither a certificate nor what the file says.

#include "cmd/init/submission.hpp"

#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

#include "cmd/init/installation.hpp"
#include "cmd/init/usual_database.hpp"
#include "cmd/terminal/context.hpp"
#include "config/settings.hpp"
#include "db/conninfo.hpp"
#include "sendmail/places.hpp"
#include "submission/own_certificate.hpp"

namespace mailroom::cmd {
namespace {

constexpr auto login_address = "127.0.0.1:587";

/// The settings of `file`. Throws if there is nothing to add to.
config::Settings require_room(const std::string& file) {
  if (!std::filesystem::exists(file))
    throw Error(ExitCode::configuration, fmt::format("there is no {}", file), "mailroom init writes it");
  const auto settings = config::load_settings({.file = file, .flags = {}}, {});
  for (const auto& value : settings.values) {
    if (value.origin.kind == config::OriginKind::file && value.key.starts_with("submission."))
      throw Error(ExitCode::configuration, fmt::format("{} has {} already", file, value.key),
                  "docs/submission.md describes each key");
  }
  if (!settings.submission_roles.empty())
    throw Error(ExitCode::configuration, fmt::format("{} has submission.roles already", file),
                "docs/submission.md describes each key");
  return settings;
}

/// Where users of this machine mail by sendmail(1), as the role that the service connects as; empty if the
/// package mailroom-sendmail is not installed.
std::string local_address(const config::Settings& settings) {
  if (sendmail::spool_directory(settings).empty()) return {};
  std::string role = "mailroom";
  for (const auto& [keyword, value] : db::parse_conninfo(settings.database.url))
    if (keyword == "user") role = value;
  return fmt::format(", '/run/mailroom/submission/smtp={}'", role);
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

ExitCode make_submission(const std::string& directory, bool with_systemd, Context& context) {
  const auto file = directory + "/mailroom.yaml";
  const auto settings = require_room(file);
  const auto local = with_systemd ? local_address(settings) : std::string();
  const std::string place = with_systemd ? "credentials/" : "";
  context.say(fmt::format(
      "{0}/{1}smtp.crt and {0}/{1}smtp.key are made, if they are not there: a certificate that clients have "
      "to trust.\n{2} gets the section submission: logins at {3}{5}.\n{4}",
      directory, place, file, login_address,
      with_systemd ? "mailroom-submission.service is enabled and started.\n" : "",
      local.empty() ? "" : ", and sendmail(1) for the users of this machine"));
  confirm(context, "do that?");
  const auto made = submission::make_certificate(host_name());
  for (const auto& [name, text] :
       {std::pair{"smtp.key", made.key}, std::pair{"smtp.crt", made.certificate}}) {
    const auto path = fmt::format("{}/{}{}", directory, place, name);
    // The key of a certificate that is there has been made with it.
    if (!write_new_file(path, text, with_systemd)) break;
    context.say(fmt::format("wrote {}\n", path));
  }
  add_to_file(
      file,
      fmt::format(
          "\n# By mailroom init --submission.\nsubmission:\n  listen: ['{0}'{2}]\n  certificate: {1}smtp.crt\n"
          "  key: {1}smtp.key\n",
          login_address, place, local));
  context.say(fmt::format("wrote {}\n", file));
  if (with_systemd)
    run_program({"systemctl", "enable", "--now", "mailroom-submission.socket", "mailroom-submission.service"},
                context);
  context.say(fmt::format(
      "done. {}\nA role that mails: CREATE ROLE shop LOGIN; \\password shop; GRANT mailroom_submitter TO shop;\n"
      "What is missing still: mailroom doctor\n",
      with_systemd ? "Mails are taken." : "Take mails, until stopped: mailroom submission"));
  return ExitCode::done;
}

}  // namespace mailroom::cmd
