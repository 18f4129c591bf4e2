// Requests of Resend's API.

#include "resend_api/resend_shape.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "base/encoded_text.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "crypto/digest.hpp"
#include "http_door/body_json.hpp"
#include "resend_api/mail_fields.hpp"

namespace mailroom::resend_api {
namespace {

using http_door::Cancel;
using http_door::Defaults;
using http_door::Fault;
using http_door::Get;
using http_door::List;
using http_door::Move;
using http_door::Operation;
using http_door::Post;
using http_door::Problem;
using http_door::Request;
using http_door::RoleView;
using Json = nlohmann::json;

constexpr std::size_t most_mails = 100;
constexpr std::size_t longest_key = 256;

enum class Place { emails, batch, email, cancel, other };

struct Target {
  Place place = Place::other;
  std::string id{};
  std::string query{};
  std::string first{};  ///< the first part of the path
};

/// Leading slashes count as one, and one at the end does not count: `//emails` is what SDKs ask for if their
/// base URL ends with a slash.
Target target_of(std::string_view path) {
  Target target;
  const auto question = std::min(path.find('?'), path.size());
  target.query = path.substr(std::min(question + 1, path.size()));
  auto rest = path.substr(0, question);
  rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const auto parts = split(rest, '/');
  target.first = parts.front();
  if (target.first != "emails" || parts.size() > 3) return target;
  if (parts.size() == 1) {
    target.place = Place::emails;
  } else if (parts.size() == 2) {
    target.place = parts[1] == "batch" ? Place::batch : Place::email;
    target.id = parts[1];
  } else if (parts[2] == "cancel") {
    target.place = Place::cancel;
    target.id = parts[1];
  }
  return target;
}

/// What a path of Resend's is done with here.
std::string words_for(const std::string& first) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> others{
      {{"domains", "domains are those of the relay that the operator has configured"},
       {"api-keys", "api-keys are made with mailroom key create"},
       {"webhooks", "webhooks are what mailroom outcomes --to posts"},
       {"templates", "templates are files of the operator"},
       {"contacts", "contacts are tables of the application"},
       {"audiences", "audiences are tables of the application"},
       {"broadcasts", "broadcasts are a call of /emails/batch, or an INSERT"},
       {"topics", "topics are made with mailroom topic create"}}};
  for (const auto& [name, words] : others)
    if (name == first) return fmt::format("There is no /{} here: {}", name, words);
  return "There is no such path here: there are /emails and /emails/batch";
}

std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape =
        text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 && hex_value(text[i + 2]) >= 0;
    plain += is_escape        ? static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]))
             : text[i] == '+' ? ' '
                              : text[i];
    if (is_escape) i += 2;
  }
  return plain;
}

std::variant<Operation, Fault> read_list(const std::string& query) {
  List list;
  for (const auto part : split(query, '&')) {
    if (part.empty()) continue;
    const auto equals = std::min(part.find('='), part.size());
    const auto name = unescaped(part.substr(0, equals));
    const auto value = unescaped(part.substr(std::min(equals + 1, part.size())));
    if (name == "limit") {
      const auto limit = parse_number<int>(value);
      if (!limit || *limit < 1 || *limit > 100)
        return Fault{Problem::bad_value, "`limit` must be a number from 1 to 100"};
      list.limit = *limit;
    } else if (name == "after" || name == "before") {
      if (!is_uuid(value))
        return Fault{Problem::bad_parameter, fmt::format("The `{}` must be a valid UUID.", name)};
      (name == "after" ? list.older_than : list.newer_than) = value;
    } else {
      return Fault{
          Problem::bad_value,
          fmt::format("`{}` is not known: there are `limit`, `after` and `before`", name.substr(0, 100))};
    }
  }
  if (!list.older_than.empty() && !list.newer_than.empty())
    return Fault{Problem::bad_value, "`after` and `before` exclude each other"};
  return list;
}

std::variant<Json, Fault> read_object(const std::string& body) {
  auto read = http_door::read_body(body);
  if (auto* problem = std::get_if<http_door::BodyProblem>(&read))
    return Fault{Problem::no_json, problem->words};
  return std::get<Json>(std::move(read));
}

std::variant<Operation, Fault> read_move(const std::string& id, const std::string& body,
                                         const Defaults& defaults) {
  auto read = read_object(body);
  if (auto* fault = std::get_if<Fault>(&read)) return std::move(*fault);
  const auto& object = std::get<Json>(read);
  if (!object.is_object()) return Fault{Problem::bad_value, "The body must be an object"};
  const auto time = object.find("scheduled_at");
  if (time == object.end() || time->is_null() ||
      (time->is_string() && time->get_ref<const std::string&>().empty()))
    return Fault{Problem::missing_field, "Missing `scheduled_at` field."};
  for (const auto& [name, value] : object.items())
    if (!value.is_null() && !is_one_of(name, {"scheduled_at", "id", "email_id"}))
      return Fault{Problem::bad_value,
                   fmt::format("`{}` cannot be changed: only `scheduled_at` can", name.substr(0, 100))};
  const auto moment = read_schedule(*time, defaults);
  if (const auto* fault = std::get_if<Fault>(&moment)) return *fault;
  return Move{.id = id, .to = std::get<Moment>(moment)};
}

std::optional<Fault> problem_of_key(std::string_view key) {
  if (key.empty() || key.size() > longest_key)
    return Fault{Problem::bad_idempotency_key, "The idempotency key must have 1 to 256 characters."};
  if (std::ranges::any_of(key, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    return Fault{Problem::bad_idempotency_key, "The idempotency key must have no control character."};
  return std::nullopt;
}

/// The key of the request; a Fault if it is none.
std::variant<std::optional<std::string>, Fault> read_key(const Request& request) {
  const auto key = request.header("idempotency-key");
  if (!key) return std::nullopt;
  if (auto fault = problem_of_key(*key)) return std::move(*fault);
  return std::string(*key);
}

/// What an idempotency key of several mails stands for: all of them, without their times and tags.
std::string digest_of(const Json& all) {
  return hex_text(crypto::sha256({plain_json(all)}));
}

Json without_times(Json arguments) {
  for (const auto* name : {"send_after", "expires_at", "options"})
    arguments.erase(name);
  return arguments;
}

std::variant<Operation, Fault> read_post(const Request& request, const RoleView& role,
                                         const Defaults& defaults) {
  auto body = read_object(request.body);
  if (auto* fault = std::get_if<Fault>(&body)) return std::move(*fault);
  const auto& object = std::get<Json>(body);
  if (!object.is_object())
    return Fault{Problem::bad_value, "The body must be an object; several mails go to /emails/batch"};
  auto key = read_key(request);
  if (auto* fault = std::get_if<Fault>(&key)) return std::move(*fault);
  auto mail = read_mail(object, role, defaults);
  if (auto* fault = std::get_if<Fault>(&mail)) return std::move(*fault);
  auto& read = std::get<ReadMail>(mail);
  Post post;
  post.key = std::get<std::optional<std::string>>(key) ? std::get<std::optional<std::string>>(key) : read.key;
  if (post.key) {
    if (auto fault = problem_of_key(*post.key)) return std::move(*fault);
  }
  post.mails.push_back(std::move(read.arguments));
  post.files = std::move(read.files);
  post.places.push_back(0);
  return post;
}

std::variant<Operation, Fault> read_batch(const Request& request, const RoleView& role,
                                          const Defaults& defaults) {
  const auto validation = lower_case(request.header("x-batch-validation").value_or("strict"));
  if (validation != "strict" && validation != "permissive")
    return Fault{Problem::bad_value, "`x-batch-validation` must be strict or permissive"};
  auto key = read_key(request);
  if (auto* fault = std::get_if<Fault>(&key)) return std::move(*fault);
  auto body = read_object(request.body);
  if (auto* fault = std::get_if<Fault>(&body)) return std::move(*fault);
  const auto& array = std::get<Json>(body);
  if (!array.is_array() || array.empty() || array.size() > most_mails)
    return Fault{Problem::bad_value, fmt::format("The body must be an array of 1 to {} mails", most_mails)};
  Post post;
  post.is_batch = true;
  post.is_permissive = validation == "permissive";
  post.key = std::get<std::optional<std::string>>(key);
  auto all = Json::array();
  for (std::size_t i = 0; i < array.size(); ++i) {
    auto mail = read_mail(array[i], role, defaults);
    if (const auto* read = std::get_if<ReadMail>(&mail); read != nullptr && read->key)
      mail = Fault{Problem::bad_value,
                   "`headers` has an idempotency key: that of a batch is of the whole request"};
    if (const auto* read = std::get_if<ReadMail>(&mail); read != nullptr && !read->files.empty())
      mail = Fault{
          Problem::bad_attachment,
          fmt::format("`attachments[{}]` has a `path`: a batch may have none", read->files.front().place)};
    if (auto* fault = std::get_if<Fault>(&mail)) {
      if (!post.is_permissive) return Fault{fault->problem, fmt::format("[{}] {}", i, fault->message)};
      post.bad.emplace_back(i, fault->message);
      all.push_back(fault->message);
      continue;
    }
    auto& arguments = std::get<ReadMail>(mail).arguments;
    all.push_back(without_times(arguments));
    post.mails.push_back(std::move(arguments));
    post.places.push_back(i);
  }
  post.digest = digest_of(all);
  return post;
}

}  // namespace

std::string ResendShape::methods_of(const std::string& path) const {
  switch (target_of(path).place) {
    case Place::emails:
      return "GET, POST";
    case Place::batch:
      return "POST";
    case Place::email:
      return "GET, PATCH";
    case Place::cancel:
      return "POST";
    case Place::other:
      break;
  }
  return {};
}

bool ResendShape::is_sending(const std::string& method, const std::string& path) const {
  const auto place = target_of(path).place;
  return method == "POST" && (place == Place::emails || place == Place::batch);
}

std::variant<Operation, Fault> ResendShape::read(const Request& request, const RoleView& role,
                                                 const Defaults& defaults) const {
  const auto target = target_of(request.path);
  if (target.place == Place::other) return Fault{Problem::no_such_path, words_for(target.first)};
  const bool is_of_one = target.place == Place::email || target.place == Place::cancel;
  const auto allowed = methods_of(request.path);
  const auto methods = split(allowed, ',');
  if (std::ranges::none_of(methods, [&](std::string_view each) { return trimmed(each) == request.method; }))
    return Fault{Problem::no_such_method,
                 fmt::format("{} is not allowed here: {} is", request.method.substr(0, 20), allowed)};
  if (is_of_one && !is_uuid(target.id))
    return Fault{Problem::bad_parameter, "The `id` must be a valid UUID."};
  if (target.place == Place::cancel) return Cancel{target.id};
  if (target.place == Place::batch) return read_batch(request, role, defaults);
  if (target.place == Place::emails)
    return request.method == "POST" ? read_post(request, role, defaults) : read_list(target.query);
  return request.method == "GET" ? std::variant<Operation, Fault>(Get{target.id})
                                 : read_move(target.id, request.body, defaults);
}

}  // namespace mailroom::resend_api
