// The database of the services on a host where PostgreSQL is new.
#pragma once

#include <string>
#include <vector>

namespace mailroom::cmd {

class Context;

constexpr auto usual_database = "dbname=mailroom user=mailroom";

/// Shows the words, and runs them. Throws Error(failed).
void run_program(const std::vector<std::string>& words, Context& context);

/// Connects, and makes the usual database of the services if it is missing.
void try_database(const std::string& url, bool with_systemd, Context& context);

}  // namespace mailroom::cmd
