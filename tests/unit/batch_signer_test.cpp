#include "consumer/batch_signer.hpp"

#include <algorithm>

#include "support/actions.hpp"
#include "support/batch_rows.hpp"
#include "support/catch.hpp"
#include "support/collector_rig.hpp"
#include "support/text_lines.hpp"

namespace mailroom::test::batch_signer_test {

using test::CapturedOutput;
using test::parse_record;
using test::row_of;

namespace {

/// Writes rows as a batch in CSV.
struct Writing {
  explicit Writing(const std::vector<claim::TokenRow>& rows, int line_limit = 100) {
    Output output(file.fd());
    Log log({.level = LogLevel::debug}, log_text);
    carriers::LineSink sink(compose::make_csv_encoder(), output);
    consumer::BatchSigner signer(crypto::Key::from_hex(std::string(64, 'a'), "the test"), log);
    const auto each_row = [&](const auto& each) { std::for_each(rows.begin(), rows.end(), each); };
    auto batch = signer.sign({1, 1}, line_limit, each_row, sink);
    signer.finish(batch, sink);
    counts = batch.receipt.counts;
  }

  CapturedOutput file;
  std::ostringstream log_text;
  claim::BatchCounts counts;
};

crypto::Secret some_secret() {
  crypto::Secret secret;
  secret.fill('S');
  return secret;
}

claim::TokenRow due_row(std::int64_t id, const queue::Action* action = activation_action()) {
  auto row = row_of(id, action, "a@test.example", "a");
  row.secret = some_secret();
  return row;
}

claim::TokenRow in_state(claim::TokenRow row, claim::TokenState state) {
  row.state = state;
  return row;
}

/// Says what became of all tokens but the last.
class SilentSink final : public consumer::Sink {
 public:
  void begin(const claim::Lease& /*lease*/, int /*line_limit*/) override {}
  void add(const claim::TokenRow& row, std::string_view /*token*/) override { tokens_.push_back(row.id); }
  void forget() override {}
  void complete() override { is_complete = tokens_.size() == 2; }
  consumer::BatchOutcome finish(const std::function<void()>& /*when_slow*/) override {
    std::vector<claim::TokenOutcome> outcomes;
    for (std::size_t i = 0; i + 1 < tokens_.size(); ++i)
      outcomes.push_back({.token = tokens_[i]});
    return {.emitted = static_cast<int>(outcomes.size()), .outcomes = std::move(outcomes)};
  }
  bool is_ready() const override { return true; }
  bool is_complete = false;  ///< the sink was told so, with both tokens

 private:
  std::vector<std::int64_t> tokens_;
};

}  // namespace

TEST_CASE("a batch's tokens are counted by status, and only due tokens are written") {
  const auto due = due_row(1);
  const Writing writing(
      {in_state(due, claim::TokenState::consumed), due, in_state(due, claim::TokenState::expired),
       in_state(due, claim::TokenState::expired), in_state(due, claim::TokenState::wrong_status), due,
       in_state(due, claim::TokenState::consumed), in_state(due, claim::TokenState::consumed),
       in_state(due, claim::TokenState::wrong_status), in_state(due, claim::TokenState::wrong_status),
       in_state(due, claim::TokenState::wrong_status), due});
  const auto& counts = writing.counts;
  CHECK(counts.emitted == 3);
  CHECK(counts.consumed == 3);
  CHECK(counts.expired == 2);
  CHECK(counts.wrong_status == 4);
  CHECK(counts.invalid == 0);
  CHECK(counts.skipped() == 9);
  CHECK(writing.log_text.str().empty());
  const auto line = writing.file.text();
  const auto values = parse_record(std::string_view(line).substr(0, line.size() - 1));
  REQUIRE(values);
  CHECK(values->size() == 15);
}

TEST_CASE("a batch with a token that has no outcome is not acknowledged") {
  std::ostringstream text;
  Log log({}, text);
  consumer::BatchSigner signer(crypto::Key::from_hex(std::string(64, 'a'), "the test"), log);
  SilentSink sink;
  const auto rows = [](const auto& each) {
    each(due_row(1));
    each(due_row(2));
  };
  auto batch = signer.sign({1, 1}, 1, rows, sink);
  CHECK(sink.is_complete);
  CHECK_THROWS_WITH(signer.finish(batch, sink), "the sink has the outcomes of 1 tokens, and the batch has 2");
}

TEST_CASE("the code is part of the signature of a recovery only") {
  crypto::Hmac hmac(crypto::Key::from_hex(std::string(64, 'a'), "the test"));
  for (const auto action : {activation_action(), recovery_action()}) {
    const auto token = queue::sign_token(hmac, *action, some_secret(), "01234");
    const Writing writing({due_row(1, action)});
    CHECK(writing.file.text() == std::to_string(action->number) + ",a@test.example,a," +
                                     std::string(token.begin(), token.end()) + ",01234\n");
  }
}

TEST_CASE("a batch without due tokens writes no line") {
  const auto expired = in_state(due_row(1), claim::TokenState::expired);
  for (const auto& rows :
       {std::vector<claim::TokenRow>(), std::vector{expired}, std::vector{expired, expired}}) {
    const Writing writing(rows);
    CHECK(writing.file.text().empty());
    CHECK(writing.counts.emitted == 0);
    CHECK(writing.counts.expired == static_cast<int>(rows.size()));
  }
}

TEST_CASE("a token that cannot be written is skipped, counted, and logged only by its id") {
  struct Defect {
    std::string name;
    std::function<void(claim::TokenRow&)> make;
  };
  const std::vector<Defect> defects{
      {"the email holds", [](claim::TokenRow& row) { row.email = "sly\n@test.example"; }},
      {"the email holds", [](claim::TokenRow& row) { row.email = "sly\xc3(@test.example"; }},
      {"the email holds", [](claim::TokenRow& row) { row.email = "sly\x7f@test.example"; }},
      {"the login holds", [](claim::TokenRow& row) { row.login = "sly\r"; }},
      {"the login holds", [](claim::TokenRow& row) { row.login = "sly\xed\xa0\x80"; }},
      {"the login holds",
       [](claim::TokenRow& row) {
         row.login = {"sly\0x", 5};
       }},
      {"the code holds", [](claim::TokenRow& row) { row.code = "98\n65"; }},
      {"the secret is not 32 bytes", [](claim::TokenRow& row) { row.secret.reset(); }},
      {"the code is not 5 characters", [](claim::TokenRow& row) { row.code = "9876"; }},
      {"the code is not 5 characters", [](claim::TokenRow& row) { row.code = "987654"; }},
      {"the code is not 5 characters", [](claim::TokenRow& row) { row.code = ""; }},
  };
  for (const auto& [name, make] : defects) {
    INFO(name);
    auto row = due_row(4711, recovery_action());
    make(row);
    const Writing writing({due_row(1), row, due_row(2)});
    CHECK(writing.counts.invalid == 1);
    CHECK(writing.counts.emitted == 2);
    const auto line = writing.file.text();
    REQUIRE(parse_record(std::string_view(line).substr(0, line.size() - 1)));
    CHECK(parse_record(std::string_view(line).substr(0, line.size() - 1))->size() == 10);
    const auto log = writing.log_text.str();
    CHECK(log.find("id=4711") != std::string::npos);
    CHECK(log.find(name) != std::string::npos);
    CHECK(std::count(log.begin(), log.end(), '\n') == 1);
    for (const std::string hidden : {"9876", "98\\n", "sly", "SSSS", "U1NT", "5353"})
      CHECK(log.find(hidden) == std::string::npos);
    CHECK(Writing({row}).file.text().empty());
  }
}

TEST_CASE("the code of an activation is not checked, because it is not signed") {
  auto row = due_row(1);
  row.code = "9876";
  CHECK(Writing({row}).counts.emitted == 1);
  row.code = "";
  CHECK(Writing({row}).counts.emitted == 1);
}

TEST_CASE("a batch with more tokens than the line limit is written as several lines") {
  std::vector<claim::TokenRow> rows;
  for (int id = 1; id <= 8; ++id)
    rows.push_back(in_state(due_row(id), id == 2 ? claim::TokenState::expired : claim::TokenState::due));
  const auto lines = [&](int line_limit) {
    const Writing writing(rows, line_limit);
    CHECK(writing.counts.emitted == 7);
    std::vector<std::size_t> tokens;
    for (const auto& line : lines_of(writing.file.text()))
      tokens.push_back(parse_record(line).value().size() / 5);
    return tokens;
  };
  CHECK(lines(1) == std::vector<std::size_t>(7, 1));
  CHECK(lines(3) == std::vector<std::size_t>{3, 3, 1});
  CHECK(lines(7) == std::vector<std::size_t>{7});
  CHECK(lines(8) == std::vector<std::size_t>{7});
}

}  // namespace mailroom::test::batch_signer_test
