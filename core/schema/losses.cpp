#include "schema/losses.hpp"

#include <algorithm>

#include "schema/statements.hpp"

namespace mailroom {
namespace {

/// Reads the words of a statement one by one. name() folds an unquoted name to lower case, as PostgreSQL
/// does.
class Words {
 public:
  explicit Words(std::string_view statement) : words_(statement_text(statement)) {}

  bool at_end() const { return next_ >= words_.size(); }
  const std::string& peek() const {
    static const std::string none;
    return at_end() ? none : words_[next_];
  }
  void skip() { ++next_; }
  /// Skips `word` if it comes next.
  bool take(std::string_view word) {
    if (peek() != word) return false;
    skip();
    return true;
  }
  void take_if_exists() {
    if (take("IF")) take("EXISTS");
  }
  std::string name() {
    auto text = peek();
    skip();
    const bool is_folded =
        std::none_of(text.begin(), text.end(), [](unsigned char c) { return std::islower(c) != 0; });
    if (is_folded) {
      std::transform(text.begin(), text.end(), text.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    }
    return text;
  }

 private:
  std::vector<std::string> words_;
  std::size_t next_ = 0;
};

void add_tables(Words& words, std::vector<Loss>& losses) {
  words.take_if_exists();
  words.take("ONLY");
  do {
    losses.push_back({.table = words.name()});
  } while (words.take(","));
}

/// Matches DROP a and DROP COLUMN a, but neither DROP CONSTRAINT a nor ALTER COLUMN a DROP DEFAULT.
void add_columns(Words& words, std::vector<Loss>& losses) {
  words.take_if_exists();
  words.take("ONLY");
  const auto table = words.name();
  for (bool begins = true; !words.at_end();) {
    const bool drops = begins && words.take("DROP");
    if (drops && words.peek() != "CONSTRAINT") {
      words.take("COLUMN");
      words.take_if_exists();
      losses.push_back({.table = table, .column = words.name()});
    }
    begins = words.peek() == ",";
    words.skip();
  }
}

std::int64_t counted(Connection& connection, const Loss& loss) {
  return connection.alone([&](pqxx::transaction_base& transaction) {
    const auto what = loss.column.empty() ? std::string("*") : transaction.quote_name(loss.column);
    return Connection::execute(transaction,
                               "SELECT count(" + what + ") FROM " + transaction.quote_name(loss.table))[0][0]
        .as<std::int64_t>();
  });
}

bool exists(Connection& connection, const Loss& loss) {
  return connection
      .run(
          "SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = "
          "to_regclass(format('%I.%I', current_schema(), $1::text)) AND NOT attisdropped AND $2::text IN "
          "('', "
          "attname::text))",
          loss.table, loss.column)[0][0]
      .as<bool>();
}

}  // namespace

std::vector<Loss> deletions_in(std::string_view sql) {
  std::vector<Loss> losses;
  for (const auto& statement : split_statements(sql)) {
    Words words(statement.text);
    if (words.take("DROP")) {
      if (words.take("TABLE")) add_tables(words, losses);
    } else if (words.take("TRUNCATE")) {
      words.take("TABLE");
      add_tables(words, losses);
    } else if (words.take("DELETE")) {
      words.take("FROM");
      add_tables(words, losses);
    } else if (words.take("ALTER")) {
      if (words.take("TABLE")) add_columns(words, losses);
    }
  }
  return losses;
}

std::vector<Loss> count_losses(Connection& connection, const MigrationSteps& steps) {
  std::vector<Loss> losses;
  for (const auto& step : steps) {
    for (auto loss : deletions_in(step.text())) {
      if (!exists(connection, loss)) continue;
      loss.rows = counted(connection, loss);
      losses.push_back(std::move(loss));
    }
  }
  return losses;
}

}  // namespace mailroom
