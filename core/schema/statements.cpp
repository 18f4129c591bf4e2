#include "schema/statements.hpp"

#include <algorithm>
#include <cctype>

#include "base/text.hpp"

namespace mailroom {
namespace {

enum class Kind { gap, word, name, literal, symbol };

struct Token {
  Kind kind;
  std::string_view text;
};

bool begins_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalpha(byte) != 0 || c == '_' || byte >= 0x80;
}

bool continues_word(char c) {
  return begins_word(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '$';
}

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

std::size_t word_size(std::string_view sql) {
  return static_cast<std::size_t>(std::find_if_not(sql.begin(), sql.end(), continues_word) - sql.begin());
}

/// The size up to and including the closing `quote`. A doubled quote is part of the text; so is one after a
/// backslash if `escapes` is true.
std::size_t quoted_size(std::string_view sql, char quote, bool escapes) {
  for (std::size_t at = 1; at < sql.size(); ++at) {
    if (escapes && sql[at] == '\\') {
      ++at;
    } else if (sql[at] == quote) {
      if (at + 1 == sql.size() || sql[at + 1] != quote) return at + 1;
      ++at;
    }
  }
  return sql.size();
}

/// The size of a block comment, which may be nested.
std::size_t block_comment_size(std::string_view sql) {
  int depth = 0;
  for (std::size_t at = 0; at + 1 < sql.size(); ++at) {
    const auto pair = sql.substr(at, 2);
    if (pair != "/*" && pair != "*/") continue;
    depth += pair == "/*" ? 1 : -1;
    ++at;
    if (depth == 0) return at + 1;
  }
  return sql.size();
}

/// The size of `$tag$ … $tag$`, or 1 if the dollar does not begin such a string.
std::size_t dollar_size(std::string_view sql) {
  std::size_t end = 1;
  if (end < sql.size() && begins_word(sql[end])) {
    while (end < sql.size() && sql[end] != '$' && continues_word(sql[end]))
      ++end;
  }
  if (end >= sql.size() || sql[end] != '$') return 1;
  const auto tag = sql.substr(0, end + 1);
  const auto close = sql.find(tag, tag.size());
  return close == std::string_view::npos ? sql.size() : close + tag.size();
}

/// The first token of `sql`, which is not empty.
Token first_token(std::string_view sql) {
  const char c = sql.front();
  const auto token = [&](Kind kind, std::size_t size) { return Token{kind, sql.substr(0, size)}; };
  if (is_space(c)) {
    return token(Kind::gap,
                 static_cast<std::size_t>(std::find_if_not(sql.begin(), sql.end(), is_space) - sql.begin()));
  }
  if (sql.starts_with("--")) return token(Kind::gap, std::min(sql.find('\n'), sql.size()));
  if (sql.starts_with("/*")) return token(Kind::gap, block_comment_size(sql));
  if (begins_word(c)) {
    const auto size = word_size(sql);
    // E'…' is a string in which a backslash escapes.
    const bool escaped = size == 1 && (c == 'E' || c == 'e') && sql.size() > 1 && sql[1] == '\'';
    return escaped ? token(Kind::literal, 1 + quoted_size(sql.substr(1), '\'', true))
                   : token(Kind::word, size);
  }
  if (c == '"') return token(Kind::name, quoted_size(sql, '"', false));
  if (c == '\'') return token(Kind::literal, quoted_size(sql, '\'', false));
  if (c == '$') {
    const auto size = dollar_size(sql);
    return token(size == 1 ? Kind::symbol : Kind::literal, size);
  }
  if (std::isdigit(static_cast<unsigned char>(c)) != 0) return token(Kind::literal, word_size(sql));
  return token(Kind::symbol, 1);
}

std::string capitals(std::string_view word) {
  std::string text(word);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

/// Detects where a statement ends.
class Boundary {
 public:
  bool is_end(const Token& token) {
    if (token.kind == Kind::word) take(capitals(token.text));
    if (token.kind != Kind::symbol) return false;
    if (token.text == "(") ++parentheses_;
    if (token.text == ")") --parentheses_;
    return token.text == ";" && parentheses_ <= 0 && blocks_ == 0;
  }

 private:
  /// Counts the blocks of a function body in standard SQL: BEGIN ATOMIC … END, with nested CASE … END.
  void take(const std::string& word) {
    if (words_ < 4 && (word == "FUNCTION" || word == "PROCEDURE")) is_routine_ = is_creation_;
    if (words_ == 0) is_creation_ = word == "CREATE";
    ++words_;
    if (!is_routine_) return;
    if (word == "BEGIN" || (word == "CASE" && blocks_ > 0)) ++blocks_;
    if (word == "END" && blocks_ > 0) --blocks_;
  }

  int words_ = 0;
  int parentheses_ = 0;
  int blocks_ = 0;
  bool is_creation_ = false;
  bool is_routine_ = false;
};

int line_of(std::string_view sql, std::size_t at) {
  return 1 + static_cast<int>(std::count(sql.begin(), sql.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

}  // namespace

std::vector<Statement> split_statements(std::string_view sql) {
  constexpr auto none = std::string_view::npos;
  std::vector<Statement> statements;
  Boundary boundary;
  std::size_t first = none;
  std::size_t last = 0;
  const auto finish = [&] {
    if (first != none) {
      statements.push_back(
          {.text = std::string(sql.substr(first, last - first)), .line = line_of(sql, first)});
    }
    first = none;
    boundary = {};
  };
  for (std::size_t at = 0; at < sql.size();) {
    const auto token = first_token(sql.substr(at));
    if (boundary.is_end(token)) {
      finish();
    } else if (token.kind != Kind::gap) {
      if (first == none) first = at;
      last = at + token.text.size();
    }
    at += token.text.size();
  }
  finish();
  return statements;
}

std::vector<std::string> statement_text(std::string_view statement) {
  std::vector<std::string> words;
  for (auto rest = statement; !rest.empty();) {
    const auto token = first_token(rest);
    rest.remove_prefix(token.text.size());
    if (token.kind == Kind::gap) continue;
    if (token.kind == Kind::name) {
      words.emplace_back(token.text.substr(1, token.text.size() - 2));
    } else {
      words.push_back(token.kind == Kind::word ? capitals(token.text) : std::string(token.text));
    }
  }
  return words;
}

std::string shortened_statement(std::string_view statement, std::size_t width) {
  std::string line;
  for (auto rest = statement; !rest.empty();) {
    const auto token = first_token(rest);
    rest.remove_prefix(token.text.size());
    line += token.kind == Kind::gap ? " " : token.text;
  }
  std::string text;
  for (const char c : line) {
    if (is_space(c) && (text.empty() || text.back() == ' ')) continue;
    text += is_space(c) ? ' ' : c;
  }
  return fit(text, width);
}

bool is_concurrent(const std::vector<Statement>& statements) {
  if (statements.size() != 1) return false;
  const auto words = statement_text(statements.front().text);
  const auto head = words.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(words.size(), 4));
  return std::find(words.begin(), head, "INDEX") != head &&
         std::find(words.begin(), head, "CONCURRENTLY") != head;
}

std::string without_concurrently(std::string_view statement) {
  std::string text;
  for (auto rest = statement; !rest.empty();) {
    const auto token = first_token(rest);
    rest.remove_prefix(token.text.size());
    if (token.kind == Kind::word && capitals(token.text) == "CONCURRENTLY") continue;
    text += token.text;
  }
  return text;
}

}  // namespace mailroom
