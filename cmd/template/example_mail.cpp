// An example token that nobody takes for a real one, and the account that was asked for.

#include "cmd/template/example_mail.hpp"

#include "accounts/account_lookup.hpp"

namespace mailroom {
namespace {

// An example must not be mistaken for a token of an account.
constexpr auto example_token =
    "this-token-is-an-example-and-does-not-verify-this-token-is-an-example-and-does-not-ver";
constexpr auto example_code = "12345";
constexpr std::chrono::minutes example_lifetime{15};

}  // namespace

TemplateValues example_mail(MailAction action, const std::optional<std::string>& account, Moment created_at,
                            Context& context) {
  TemplateValues values{.action = action,
                        .email = "user1@mail.example",
                        .login = "user1",
                        .token = example_token,
                        .code = example_code,
                        .valid_from = created_at,
                        .expires_at = created_at + example_lifetime};
  if (account) {
    const auto connection = context.connect_to_schema("template");
    auto found = find_accounts(*connection, {*account}).front();
    values.email = std::move(found.email);
    values.login = std::move(found.login);
  }
  return values;
}

}  // namespace mailroom
