// A list of the words of PostgreSQL 14 to 17, libpq and PgBouncer. A failed connection has no SQLSTATE.

#include "db/loss_hint.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "db/conninfo.hpp"

namespace mailroom {
namespace {

constexpr auto all_in_use =
    "all connections are in use: close some, or raise max_connections, or the limit of the role, the database or the pooler";
constexpr auto check_password =
    "check the user, and the password in database.password_file, PGPASSFILE or PGPASSWORD";
constexpr auto use_tls =
    "the server may want TLS: add sslmode=require to the connection string, or an entry for this user, database and "
    "address to pg_hba.conf";
constexpr auto add_entry =
    "add an entry for this user, database and address to pg_hba.conf, and let the server reload it";
constexpr auto check_certificate =
    "name the file of the authority that signed the server's certificate as sslrootcert, or correct the host's name";
constexpr auto await_start = "wait until the server has started";
constexpr auto check_host = "start the server, or correct host and port";

struct Advice {
  std::string_view words;
  const char* hint;
};

/// Of several that fit, the first: libpq reports each address that it tried, and where the server answered is
/// worth more than where nobody did.
constexpr std::array advice{
    Advice{"sorry, too many clients already", all_in_use},
    Advice{"remaining connection slots are reserved", all_in_use},
    Advice{"too many connections for", all_in_use},
    Advice{"no more connections allowed", all_in_use},
    Advice{"query_wait_timeout", all_in_use},
    Advice{"password authentication failed", check_password},
    Advice{"no password supplied", check_password},
    Advice{"empty password", check_password},
    Advice{"SASL authentication failed", check_password},
    Advice{"Peer authentication failed",
           "run it as that user of the system, or connect with a password and host=localhost"},
    Advice{"Ident authentication failed", "run it as that user of the system, or connect with a password"},
    Advice{"no encryption", use_tls},
    Advice{"SSL off", use_tls},
    Advice{"no pg_hba.conf entry", add_entry},
    Advice{"pg_hba.conf rejects", add_entry},
    Advice{"server does not support SSL",
           "turn on ssl in the server, or use sslmode=prefer in the connection string"},
    Advice{"SSL required", use_tls},
    Advice{"root certificate file", check_certificate},
    Advice{"certificate verify failed", check_certificate},
    Advice{"server certificate for", check_certificate},
    Advice{"not currently accepting connections",
           "allow connections to the database (ALTER DATABASE … ALLOW_CONNECTIONS), or name another one"},
    Advice{"permission denied for database", "let the owner of the database grant CONNECT on it to the role"},
    Advice{"is not permitted to log in", "let a superuser give the role LOGIN, or connect as another user"},
    Advice{"no such database", "create the database, or correct its name in the connection string"},
    Advice{"no such user", "correct the user in the connection string"},
    Advice{"the database system is", await_start},
    Advice{"session is read-only", "none of the hosts is the primary: start it, or add its host"},
    Advice{"server is in hot standby mode", "none of the hosts is the primary: start it, or add its host"},
    Advice{"could not translate host name", "correct the host's name, or the name service of this machine"},
    Advice{"timeout expired",
           "nothing answers there: correct host and port, or let the network through to it"},
    Advice{"timed out", "nothing answers there: correct host and port, or let the network through to it"},
    Advice{"No route to host",
           "nothing answers there: correct host and port, or let the network through to it"},
    Advice{"Connection refused", check_host},
    Advice{"Is the server running", check_host},
};

/// `role "app" does not exist`
bool is_missing(std::string_view reason, std::string_view kind) {
  const auto start = reason.find(kind);
  return start != std::string_view::npos &&
         reason.find("\" does not exist", start + kind.size()) != std::string_view::npos;
}

}  // namespace

std::string hint_for_loss(std::string_view reason) {
  if (is_missing(reason, "database \""))
    return "create the database, or correct its name in the connection string";
  if (is_missing(reason, "role \""))
    return "create the role with LOGIN, or correct the user in the connection string";
  const auto found = std::ranges::find_if(
      advice, [&](const Advice& each) { return reason.find(each.words) != std::string_view::npos; });
  return found == advice.end() ? "" : found->hint;
}

std::string unreachable_hint(const ConnectionLost& error, const std::string& url) {
  if (!url.empty()) {
    const auto tried =
        "tried: " + redact_conninfo(url) + "; mailroom config show shows where that comes from";
    return error.hint().empty() ? tried : error.hint() + "; " + tried;
  }
  if (!error.hint().empty()) return error.hint() + "; tried: " + describe_target(url);
  return "name the database with MAILROOM_DATABASE_URL, database.url or libpq's PGHOST, PGDATABASE and PGUSER";
}

}  // namespace mailroom
