// Verifies each token of the lines, and looks up the ids of some thousand at a time.

#include "reconcile/consumer_output.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <iostream>

#include "db/time_sql.hpp"

namespace mailroom {
namespace {

constexpr std::size_t lookups_at_once = 5000;

class OutputReader {
 public:
  OutputReader(Connection& connection, const KeyRing& keys, const std::string& queue)
      : connection_(connection), verifier_(keys), queue_(queue) {
    output_.begun_at =
        connection.run("SELECT " + microseconds_sql("clock_timestamp()"))[0][0].as<std::int64_t>();
  }

  void read(const std::string& name, std::istream& stream) {
    file_ = name;
    line_ = 0;
    std::string text;
    while (std::getline(stream, text)) {
      ++line_;
      // A reader ignores a last line without a newline, and an empty line ends a torn one.
      if (stream.eof())
        ++output_.torn_lines;
      else if (!text.empty())
        add_line(text);
    }
    if (stream.bad())
      throw Error(ExitCode::failed, fmt::format("cannot read {}: {}", name, std::strerror(errno)));
  }

  ConsumerOutput finish() {
    look_up();
    std::sort(output_.written.begin(), output_.written.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    return std::move(output_);
  }

 private:
  struct Place {
    std::string file;
    std::int64_t line = 0;
  };

  void add_line(const std::string& text) {
    const auto line = parse_output_line(text);
    if (!line) {
      ++output_.torn_lines;
      return;
    }
    if (line->queue && *line->queue != queue_) return;
    ++output_.lines;
    for (const auto& token : line->tokens)
      add_token(token);
  }

  void add_token(const WrittenToken& written) {
    ++output_.tokens;
    const auto decoded = decode_token(written.token);
    if (!decoded) return add_defect({file_, line_}, "a token is malformed");
    const auto verdict = verifier_.verify(*decoded, written.code, false);
    if (!verdict) return add_defect({file_, line_}, "a token is signed with none of the keys");
    names_.push_back({.secret = decoded->secret, .action = verdict->action});
    places_.push_back({file_, line_});
    if (names_.size() >= lookups_at_once) look_up();
  }

  void look_up() {
    const auto records = find_tokens(connection_, names_, false);
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (records[i])
        add_id(records[i]->id);
      else
        add_defect(places_[i], "a token is not in this database");
    }
    names_.clear();
    places_.clear();
  }

  void add_id(std::int64_t id) {
    auto& written = output_.written;
    if (!written.empty() && written.back().end == id)
      ++written.back().end;
    else
      written.push_back({.first = id, .end = id + 1});
  }

  void add_defect(const Place& place, const char* text) {
    ++output_.defective;
    if (output_.defects.size() < most_defects) output_.defects.push_back({place.file, place.line, text});
  }

  Connection& connection_;
  Verifier verifier_;
  const std::string& queue_;
  std::string file_;
  std::int64_t line_ = 0;
  std::vector<TokenName> names_;
  std::vector<Place> places_;
  ConsumerOutput output_;
};

}  // namespace

ConsumerOutput read_consumer_output(Connection& connection, const KeyRing& keys, const std::string& queue,
                                    const std::vector<std::string>& files) {
  OutputReader reader(connection, keys, queue);
  for (const auto& file : files) {
    if (file == "-") {
      reader.read("standard input", std::cin);
      continue;
    }
    std::ifstream stream(file);
    if (!stream)
      throw Error(ExitCode::failed, fmt::format("cannot open {}: {}", file, std::strerror(errno)),
                  "--against takes the files that consumers wrote, or - for standard input");
    reader.read(file, stream);
  }
  return reader.finish();
}

}  // namespace mailroom
