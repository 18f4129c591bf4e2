// Verifies each token of the lines, and looks up the ids of some thousand at a time.

#include "reconcile/consumer_output.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <set>

#include "base/json.hpp"
#include "base/text.hpp"
#include "db/values.hpp"
#include "queue/action.hpp"

namespace mailroom::reconcile {
namespace {

constexpr std::size_t lookups_at_once = 5000;

class OutputReader {
 public:
  OutputReader(db::Connection& connection, const crypto::KeyRing& keys, const std::string& queue)
      : connection_(connection),
        actions_(queue::read_actions(connection)),
        verifier_(keys, actions_.signed_paths()),
        queue_(queue) {
    output_.begun_at =
        connection.run("SELECT " + db::microseconds_sql("clock_timestamp()")).value<std::int64_t>();
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
    if (written.id) {
      unsigned_.push_back({*written.id, {file_, line_}});
      if (unsigned_.size() >= lookups_at_once) look_up_unsigned();
      return;
    }
    const auto decoded = crypto::decode_token(written.token);
    if (!decoded) return add_defect({file_, line_}, "a token is malformed");
    const auto verdict = verifier_.verify(*decoded, written.code, false);
    if (!verdict) return add_defect({file_, line_}, "a token is signed with none of the keys");
    names_.push_back({.secret = decoded->secret, .action = actions_.find_path(verdict->path)->name});
    places_.push_back({file_, line_});
    if (names_.size() >= lookups_at_once) look_up();
  }

  void look_up() {
    const auto records = accounts::find_tokens(connection_, names_, false);
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (records[i])
        add_id(records[i]->id);
      else
        add_defect(places_[i], "a token is not in this database");
    }
    names_.clear();
    places_.clear();
    look_up_unsigned();
  }

  /// Tokens of an action without a path are written with their ids only.
  void look_up_unsigned() {
    if (unsigned_.empty()) return;
    std::vector<std::int64_t> ids;
    for (const auto& [id, place] : unsigned_)
      ids.push_back(id);
    const auto found = connection_
                           .run("SELECT id FROM tokens WHERE id = ANY ($1::bigint[]) AND secret IS NULL",
                                db::array_text(ids))
                           .values<std::int64_t>();
    const std::set<std::int64_t> known(found.begin(), found.end());
    for (const auto& [id, place] : unsigned_) {
      if (known.contains(id))
        add_id(id);
      else
        add_defect(place, "a token is not in this database");
    }
    unsigned_.clear();
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

  db::Connection& connection_;
  queue::Actions actions_;
  crypto::Verifier verifier_;
  const std::string& queue_;
  std::string file_;
  std::int64_t line_ = 0;
  std::vector<accounts::TokenName> names_;
  std::vector<Place> places_;
  std::vector<std::pair<std::int64_t, Place>> unsigned_;
  ConsumerOutput output_;
};

constexpr std::size_t fields_per_token = 5;
constexpr std::size_t token_field = 3;
constexpr std::size_t code_field = 4;

/// Takes one field of RFC 4180 from the front of `rest`, with the comma after it. False if it is malformed.
bool take_field(std::string_view& rest, std::string& field, bool& has_more) {
  field.clear();
  if (!rest.starts_with('"')) {
    const auto end = std::min(rest.find(','), rest.size());
    field = rest.substr(0, end);
    has_more = end < rest.size();
    rest.remove_prefix(has_more ? end + 1 : end);
    return field.find('"') == std::string::npos;
  }
  rest.remove_prefix(1);
  for (;;) {
    const auto quote = rest.find('"');
    if (quote == std::string_view::npos) return false;
    field += rest.substr(0, quote);
    rest.remove_prefix(quote + 1);
    if (!rest.starts_with('"')) break;
    field += '"';
    rest.remove_prefix(1);
  }
  has_more = rest.starts_with(',');
  if (has_more) rest.remove_prefix(1);
  return has_more || rest.empty();
}

std::optional<OutputLine> parse_csv_line(std::string_view rest) {
  OutputLine line;
  WrittenToken token;
  std::string field;
  bool has_more = true;
  for (std::size_t place = 0; has_more; place = (place + 1) % fields_per_token) {
    if (!take_field(rest, field, has_more)) return std::nullopt;
    if (place == 0 && !parse_number<int>(field)) return std::nullopt;
    if (place == token_field) token.token = std::move(field);
    if (place == code_field) {
      token.code = std::move(field);
      line.tokens.push_back(std::move(token));
    }
    if (!has_more && place != code_field) return std::nullopt;
  }
  return line;
}

std::optional<OutputLine> parse_json_line(std::string_view text) {
  const auto json = try_parse_json(text);
  if (!json.is_object() || !json.contains("queue") || !json["queue"].is_string() ||
      !json.contains("tokens") || !json["tokens"].is_array())
    return std::nullopt;
  OutputLine line{.queue = json["queue"].get<std::string>()};
  for (const auto& each : json["tokens"]) {
    const bool is_token = each.is_object() && each.contains("token") && each["token"].is_string() &&
                          each.contains("code") && each["code"].is_string();
    if (!is_token) return std::nullopt;
    WrittenToken token{.token = each["token"].get<std::string>(), .code = each["code"].get<std::string>()};
    const auto id = each.find("id");
    if (token.token.empty() && id != each.end() && id->is_number_integer())
      token.id = id->get<std::int64_t>();
    line.tokens.push_back(std::move(token));
  }
  return line;
}

}  // namespace

ConsumerOutput read_consumer_output(db::Connection& connection, const crypto::KeyRing& keys,
                                    const std::string& queue, const std::vector<std::string>& files) {
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

std::optional<OutputLine> parse_output_line(std::string_view line) {
  return line.starts_with('{') ? parse_json_line(line) : parse_csv_line(line);
}

}  // namespace mailroom::reconcile
