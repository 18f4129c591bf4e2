// Makes the role and the database with PostgreSQL's own programs, as its own user.

#include "cmd/init/usual_database.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "cmd/init/installation.hpp"
#include "cmd/terminal/context.hpp"
#include "process/child.hpp"

namespace mailroom::cmd {
namespace {

void connect_as_service() {
  const ActingAsService acting(true);
  db::Connection(usual_database, "mailroom init");
}

/// On a server where PostgreSQL is new: the role of the services, and their database.
void create_usual_database(const std::string& reason, Context& context) {
  confirm(context, fmt::format("{}: create it, as PostgreSQL's own user?", reason));
  const std::vector<std::string> as_postgres{"runuser", "-u", "postgres", "--"};
  const auto run_so = [&](const std::vector<std::string>& more) {
    auto words = as_postgres;
    words.insert(words.end(), more.begin(), more.end());
    run_program(words, context);
  };
  if (reason.find("role ") != std::string::npos) run_so({"createuser", service_user});
  run_so({"createdb", "--owner", service_user, service_user});
}

}  // namespace

void run_program(const std::vector<std::string>& words, Context& context) {
  context.say(fmt::format("$ {}\n", joined(words, " ")));
  process::Child child;
  const int problem = child.start(words, {{1, 1}, {2, 2}});
  if (problem != 0 || (child.wait(), !child.has_succeeded()))
    throw Error(ExitCode::failed, fmt::format("'{}' has failed", joined(words, " ")),
                "correct what it says, and type it");
}

void try_database(const std::string& url, bool with_systemd, Context& context) {
  if (!with_systemd || url != usual_database) {
    const ActingAsService acting(with_systemd);
    db::Connection(url, "mailroom init");
    return;
  }
  try {
    connect_as_service();
  } catch (const db::ConnectionLost& error) {
    const std::string reason = error.what();
    if (reason.find("does not exist") == std::string::npos) throw;
    create_usual_database(reason, context);
    connect_as_service();
  }
}

}  // namespace mailroom::cmd
