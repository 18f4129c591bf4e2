// The built-in mails, word for word: activation and recovery, as text and as HTML.

#include "mail/builtin_templates.hpp"

#include <algorithm>

namespace mailroom {
namespace {

constexpr std::string_view activation_text = R"(Hello {{login}},

An account was created with this address. To activate it, open this link:

{{link}}

The link is valid for {{expires_in}}, until {{expires_at}}.

If you did not ask for an account, ignore this mail: without the link nothing is activated.
)";

constexpr std::string_view activation_html = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Activate your account</title>
</head>
<body style="font-family: sans-serif; line-height: 1.5; max-width: 36em; margin: 2em auto; padding: 0 1em">
<p>Hello {{login}},</p>
<p>An account was created with this address. To activate it, open this link:</p>
<p><a href="{{link}}" style="overflow-wrap: anywhere">{{link}}</a></p>
<p>The link is valid for {{expires_in}}, until {{expires_at}}.</p>
<p>If you did not ask for an account, ignore this mail: without the link nothing is activated.</p>
</body>
</html>
)";

constexpr std::string_view recovery_text = R"(Hello {{login}},

Someone asked for a new password for your account. To choose one, open this link:

{{link}}{{#code}}

You are asked for this code: {{code}}{{/code}}

The link is valid for {{expires_in}}, until {{expires_at}}.

If you did not ask for this, ignore this mail: your password stays as it is.
)";

constexpr std::string_view recovery_html = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Choose a new password</title>
</head>
<body style="font-family: sans-serif; line-height: 1.5; max-width: 36em; margin: 2em auto; padding: 0 1em">
<p>Hello {{login}},</p>
<p>Someone asked for a new password for your account. To choose one, open this link:</p>
<p><a href="{{link}}" style="overflow-wrap: anywhere">{{link}}</a></p>{{#code}}
<p>You are asked for this code: <strong>{{code}}</strong></p>{{/code}}
<p>The link is valid for {{expires_in}}, until {{expires_at}}.</p>
<p>If you did not ask for this, ignore this mail: your password stays as it is.</p>
</body>
</html>
)";

}  // namespace

const std::array<BuiltinTemplate, 6>& builtin_templates() {
  static const std::array<BuiltinTemplate, 6> all{
      {{MailAction::activation, MailPart::subject, "activation.subject", "Activate your account\n"},
       {MailAction::activation, MailPart::text, "activation.txt", activation_text},
       {MailAction::activation, MailPart::html, "activation.html", activation_html},
       {MailAction::recovery, MailPart::subject, "recovery.subject", "Choose a new password\n"},
       {MailAction::recovery, MailPart::text, "recovery.txt", recovery_text},
       {MailAction::recovery, MailPart::html, "recovery.html", recovery_html}}};
  return all;
}

const BuiltinTemplate& builtin_template(MailAction action, MailPart part) {
  const auto& all = builtin_templates();
  return *std::find_if(all.begin(), all.end(),
                       [&](const auto& builtin) { return builtin.action == action && builtin.part == part; });
}

}  // namespace mailroom
