// What a line of a client says: its verb, paths and parameters.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom::submission {

enum class Verb {
  unknown,
  web,
  ehlo,
  helo,
  mail,
  rcpt,
  data,
  bdat,
  rset,
  noop,
  quit,
  auth,
  starttls,
  vrfy,
  help
};

struct Command {
  Verb verb = Verb::unknown;
  std::string_view rest{};  ///< behind the verb and a blank; behind `FROM:` and `TO:` for MAIL and RCPT
};
/// `line` without its line end.
Command parse_command(std::string_view line);

/// `KEY=value` behind a path; the key is in upper case.
struct Parameter {
  std::string key{};
  std::string value{};
};

struct PathArgument {
  std::string address{};  ///< empty: the null reverse-path
  std::vector<Parameter> parameters{};
};
/// The path of MAIL or RCPT: with angle brackets or without them, and with blanks before it, as PHP and
/// scripts write it. A source route is left out (RFC 5321, appendix C). nullopt for what is none.
std::optional<PathArgument> parse_path(std::string_view rest);

/// True for `root`, `root@web1` and the like: no mail goes there from another host.
bool is_local_address(std::string_view address);

struct ChunkSize {
  unsigned long long size = 0;
  bool is_last = false;
};
/// `500` or `500 LAST` of BDAT (RFC 3030).
std::optional<ChunkSize> parse_chunk_size(std::string_view rest);

}  // namespace mailroom::submission
