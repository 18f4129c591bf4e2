// Renders some thousands of people at a time, so that a long list needs little memory.

#include "cmd/selection/people_list.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "cmd/terminal/text_table.hpp"
#include "compose/encoder.hpp"

namespace mailroom::cmd {
namespace {

using Json = nlohmann::ordered_json;

/// Wide enough for all columns where no terminal limits them.
constexpr std::size_t widest_list = 1000;

/// `550 5.1.1 no such user`, after the reason if there is one.
std::string why(const reconcile::TokenOfPerson& person) {
  std::string text = person.reason;
  if (person.code == 0 && (person.reply.empty() || person.reply == text)) return text;
  if (!text.empty()) text += ": ";
  if (person.code == 0) return text + person.reply;
  return text + std::to_string(person.code) + (person.reply.empty() ? "" : " " + person.reply);
}

std::string account_text(const reconcile::TokenOfPerson& person, const char* without) {
  return person.account ? std::to_string(*person.account) : without;
}

/// `ada@example.org (order:17)`: with the reference of a message.
std::string address_text(const reconcile::TokenOfPerson& person) {
  const auto address = shown_text(person.address);
  return person.reference.empty() ? address : fmt::format("{} ({})", address, shown_text(person.reference));
}

std::string table_of(const std::vector<reconcile::TokenOfPerson>& people, bool names_queue, bool has_heading,
                     std::size_t width) {
  using Align = TextTable::Align;
  const auto title = [&](const char* text) { return has_heading ? std::string(text) : std::string(); };
  std::vector<TextTable::Column> columns{
      {title("account"), Align::right},      {title("login")},
      {title("address"), Align::left, true}, {title("token"), Align::right},
      {title("outcome"), Align::left, true}, {title("time"), Align::left, true},
      {title("reason"), Align::left, true}};
  if (names_queue) columns.insert(columns.begin(), {title("queue")});
  TextTable table(std::move(columns));
  for (const auto& person : people) {
    std::vector<std::string> cells{account_text(person, "-"),
                                   shown_text(person.login),
                                   address_text(person),
                                   std::to_string(person.token),
                                   fate::outcome_text(person.outcome),
                                   person.at ? moment_text(*person.at) : "-",
                                   shown_text(why(person))};
    if (names_queue) cells.insert(cells.begin(), shown_text(person.queue));
    table.add(std::move(cells));
  }
  return table.render(width);
}

std::string json_lines(const std::vector<reconcile::TokenOfPerson>& people) {
  std::string lines;
  for (const auto& person : people) {
    const Json object{{"queue", person.queue},
                      {"token", person.token},
                      {"action", person.action},
                      {"account", optional_json<Json>(person.account)},
                      {"login", text_or_null<Json>(person.login)},
                      {"address", text_or_null<Json>(person.address)},
                      {"created_at", moment_json<Json>(person.created_at)},
                      {"outcome", fate::outcome_name(person.outcome)},
                      {"time", person.at ? moment_json<Json>(*person.at) : Json(nullptr)},
                      {"reason", text_or_null<Json>(person.reason)},
                      {"code", person.code == 0 ? Json(nullptr) : Json(person.code)},
                      {"reply", text_or_null<Json>(person.reply)},
                      {"message", optional_json<Json>(person.message)},
                      {"reference", text_or_null<Json>(person.reference)},
                      {"perhaps", person.perhaps}};
    lines += json_text(object) + "\n";
  }
  return lines;
}

constexpr const char* csv_heading =
    "queue,token,action,account,login,address,created_at,outcome,time,reason,code,reply,message,reference\n";

std::string csv_lines(const std::vector<reconcile::TokenOfPerson>& people) {
  std::string lines;
  for (const auto& person : people) {
    const std::array values{person.queue,
                            std::to_string(person.token),
                            person.action,
                            account_text(person, ""),
                            person.login,
                            person.address,
                            moment_text(person.created_at),
                            std::string(fate::outcome_name(person.outcome)),
                            person.at ? moment_text(*person.at) : "",
                            person.reason,
                            person.code == 0 ? "" : std::to_string(person.code),
                            person.reply,
                            person.message ? std::to_string(*person.message) : "",
                            person.reference};
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) lines += ',';
      compose::append_csv_value(lines, printable(values.at(i)));
    }
    lines += '\n';
  }
  return lines;
}

/// The newest of all that are added, in the order in which they came.
class NewestPeople {
 public:
  explicit NewestPeople(std::int64_t limit) : limit_(static_cast<std::size_t>(limit)) {}

  void add(const std::vector<reconcile::TokenOfPerson>& people) {
    kept_.insert(kept_.end(), people.begin(), people.end());
    if (kept_.size() > 2 * limit_ + people.size()) cut();
  }
  const std::vector<reconcile::TokenOfPerson>& people() {
    if (kept_.size() > limit_) cut();
    return kept_;
  }
  std::int64_t omitted() const { return omitted_; }

 private:
  void cut() {
    auto tokens = kept_;
    const auto last = tokens.begin() + static_cast<std::ptrdiff_t>(limit_);
    std::ranges::nth_element(tokens, last, [](const auto& a, const auto& b) { return a.token > b.token; });
    // Of a token in several queues those that were found first.
    const auto oldest =
        std::ranges::min_element(tokens.begin(), last, {}, &reconcile::TokenOfPerson::token)->token;
    auto room = limit_ - static_cast<std::size_t>(std::ranges::count_if(
                             kept_, [&](const auto& each) { return each.token > oldest; }));
    omitted_ += static_cast<std::int64_t>(kept_.size() - limit_);
    std::erase_if(kept_, [&](const auto& each) {
      if (each.token != oldest || room == 0) return each.token <= oldest;
      --room;
      return false;
    });
  }

  std::size_t limit_;
  std::int64_t omitted_ = 0;
  std::vector<reconcile::TokenOfPerson> kept_;
};

}  // namespace

reconcile::Reconciliation print_people(Context& context, db::Connection& connection,
                                       reconcile::ReconcileRequest request,
                                       const selection::Selection& selection, PeopleFormat format,
                                       std::optional<std::int64_t> newest) {
  const bool names_queue = request.queues.size() > 1;
  bool is_first = true;
  if (format == PeopleFormat::csv) context.print(csv_heading);
  request.listed = &selection;
  const reconcile::OnPeople print = [&](const std::vector<reconcile::TokenOfPerson>& people) {
    const auto text = format == PeopleFormat::json  ? json_lines(people)
                      : format == PeopleFormat::csv ? csv_lines(people)
                                                    : table_of(people, names_queue, is_first,
                                                               context.out().columns().value_or(widest_list));
    is_first = false;
    context.print(text);
  };
  std::optional<NewestPeople> kept;
  if (newest) kept.emplace(*newest);
  request.on_people = kept ? reconcile::OnPeople([&](const std::vector<reconcile::TokenOfPerson>& people) {
    kept->add(people);
  })
                           : print;
  auto result = reconcile::reconcile(connection, request);
  if (kept && !kept->people().empty()) print(kept->people());
  if (kept && kept->omitted() > 0)
    context.log().warn("older tokens are omitted", {{"omitted", kept->omitted()}, {"limit", *newest}});
  if (is_first && format == PeopleFormat::text) {
    context.print(
        request.since.empty()
            ? "no token of the last 24 hours matches; --since begins earlier\n"
            : "no token matches; --since and --until mean when a token was created, --mailed-since and --mailed-until when it was mailed\n");
  }
  return result;
}

}  // namespace mailroom::cmd
