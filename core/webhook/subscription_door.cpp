// One answer for all links that are not ours: forged, cut off, of a key that is gone, of a mail that is no
// longer on record.

#include "webhook/subscription_door.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "process/http_form.hpp"

namespace mailroom::webhook {
namespace {

constexpr auto one_click = "One-Click";
constexpr auto html = "text/html; charset=utf-8";

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

/// True for the body of RFC 8058, in either form of a form.
bool is_one_click(const process::HttpCall& call) {
  constexpr std::string_view name = "list-unsubscribe";
  if (call.header("content-type").starts_with("multipart/form-data"))
    return holds_in_any_case(call.body, name) && call.body.find(one_click) != std::string::npos;
  const auto fields = process::form_fields(call.body);
  return std::ranges::any_of(fields, [&](const auto& field) {
    return lower_case(field.first) == name && field.second == one_click;
  });
}

/// True for what may be a name of a topic.
bool is_topic(std::string_view text) {
  return !text.empty() && text.size() <= 62 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

/// Only what was shown changes: a topic may be new since the page was opened.
std::optional<SubscriptionRequest> saved_choices(const process::HttpCall& call) {
  SubscriptionRequest request{.view = SubscriptionView::saved};
  std::vector<std::string> shown;
  for (auto& [name, value] : process::form_fields(call.body)) {
    if (!is_topic(value)) continue;
    if (name == "on") request.change.on.push_back(std::move(value));
    if (name == "shown") shown.push_back(std::move(value));
  }
  if (shown.empty()) return std::nullopt;
  for (auto& topic : shown) {
    if (std::ranges::find(request.change.on, topic) == request.change.on.end())
      request.change.off.push_back(std::move(topic));
  }
  request.change.source = "page";
  return request;
}

process::HttpPage not_found() {
  return {.status = 404, .text = "This link is not valid.\n"};
}

}  // namespace

std::optional<SubscriptionRequest> subscription_request(mail::SubscriptionUse use,
                                                        const process::HttpCall& call) {
  const bool is_own_topic = use == mail::SubscriptionUse::unsubscribe;
  if (call.method == "GET")
    return SubscriptionRequest{.view =
                                   is_own_topic ? SubscriptionView::question : SubscriptionView::preferences};
  if (!is_own_topic) return saved_choices(call);
  if (!is_one_click(call)) return std::nullopt;
  SubscriptionRequest request{.view = SubscriptionView::stopped};
  request.change.stops_own = true;
  request.change.source = "one_click";
  return request;
}

bool WrongLinks::are_many(const std::string& client, TimePoint now) {
  constexpr std::size_t most_clients = 10'000;
  if (now - since_ >= std::chrono::minutes(1) || counts_.size() > most_clients) {
    counts_.clear();
    since_ = now;
  }
  return ++counts_[client] > most;
}

std::optional<process::HttpPage> SubscriptionDoor::answer(const process::HttpCall& call) {
  const auto text = last_part(call.path);
  // A link that was cut off; providers only post.
  if (!mail::is_subscription_text(text))
    return call.method == "GET" ? std::optional(not_found()) : std::nullopt;
  return answer_link(text, call);
}

process::HttpPage SubscriptionDoor::answer_link(std::string_view text, const process::HttpCall& call) {
  if (call.method != "GET" && call.method != "POST")
    return {.status = 405, .text = "only GET and POST are answered\n"};
  if (call.body.size() > longest_body) return {.status = 413, .text = "the body is too long\n"};
  const auto database = home();
  if (database.empty()) return {.status = 503, .text = "Please try again in a moment.\n"};
  const auto link = mail::read_subscription_text(text, database, keys_);
  return link ? answer_own(*link, text, call) : refuse(call);
}

process::HttpPage SubscriptionDoor::answer_own(const mail::SubscriptionLink& link, std::string_view text,
                                               const process::HttpCall& call) {
  if (is_too_many()) return {.status = 429, .text = "too many requests\n"};
  auto request = subscription_request(link.use, call);
  if (!request) return {.status = 400, .text = "the form is not one of this page\n"};
  request->change.token = link.token;
  const auto choices = submit_(request->change);
  if (!choices) return {.status = 503, .text = "Please try again in a moment.\n"};
  if (choices->empty()) return not_found();
  auto view = request->view;
  if (view == SubscriptionView::question && !choices->front().is_on) view = SubscriptionView::stopped;
  auto preferences = std::string(text);
  preferences.front() = 'p';
  return {.text = subscription_page(view, *choices, preferences,
                                    wanted_languages(call.header("accept-language"))),
          .type = html,
          .headers = subscription_headers()};
}

process::HttpPage SubscriptionDoor::refuse(const process::HttpCall& call) {
  const std::lock_guard lock(mutex_);
  if (wrong_.are_many(process::client_of(call), steady_now()))
    return {.status = 429, .text = "too many requests\n"};
  return not_found();
}

bool SubscriptionDoor::is_too_many() {
  const std::lock_guard lock(mutex_);
  return limit_.is_exceeded(steady_now());
}

}  // namespace mailroom::webhook
