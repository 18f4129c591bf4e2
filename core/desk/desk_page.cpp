// Whatever is not our own text is escaped. The style is in the page, which fetches nothing.

#include "desk/desk_page.hpp"

#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "crypto/base64.hpp"
#include "crypto/digest.hpp"
#include "templates/template_program.hpp"

namespace mailroom::desk {
namespace {

constexpr std::string_view style =
    ":root{color-scheme:light dark}*{box-sizing:border-box}"
    "body{margin:0;background:#fff;color:#1b1b1f;font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}"
    "header,main{max-width:60rem;margin:0 auto;padding:1rem}"
    "header{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:center;border-bottom:1px solid #6b6b75}"
    "header nav{display:flex;flex-wrap:wrap;gap:.25rem 1rem;flex:1}"
    "h1{font-size:1.4rem;line-height:1.25;margin:.5rem 0 1rem}h2{font-size:1.15rem;margin:1.5rem 0 .5rem}"
    "a{color:#0b57d0}nav a,li>a{display:inline-block;padding:.375rem 0}"
    "label{display:block;font-weight:600;margin:0 0 .25rem}"
    "input,select,textarea{font:inherit;width:100%;min-height:2.75rem;padding:.5rem .75rem;border:1px solid #6b6b75;"
    "border-radius:.375rem;background:#fff;color:#1b1b1f}"
    "form p{margin:0 0 1rem}"
    "button,.button{display:inline-block;font:inherit;font-weight:600;min-height:2.75rem;padding:.5rem 1.25rem;"
    "border:1px solid #0b57d0;border-radius:.375rem;background:#0b57d0;color:#fff;cursor:pointer;text-decoration:none}"
    ".plain{background:none;color:#0b57d0}"
    ".actions{display:flex;flex-wrap:wrap;gap:.75rem;margin:1rem 0;padding:0;list-style:none}"
    ".note,.bad{border-left:.25rem solid #0b57d0;background:#eef1f8;padding:.75rem 1rem;margin:0 0 1rem}"
    ".bad{border-color:#b3261e}.mark{font-weight:700}"
    "dl{display:grid;grid-template-columns:minmax(6rem,auto) 1fr;gap:.25rem 1rem;margin:0}dt{font-weight:600}dd{margin:0}"
    "ol,ul{padding-left:1.25rem}.events{list-style:none;padding:0}.events li{border-top:1px solid #6b6b75;padding:.5rem 0}"
    "time{font-variant-numeric:tabular-nums}"
    "pre{white-space:pre-wrap;margin:0;background:#eef1f8;padding:.75rem 1rem;font:.9375rem/1.45 ui-monospace,monospace}"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%}caption{text-align:left;font-weight:600;padding:.25rem 0}"
    "th,td{text-align:left;padding:.375rem .5rem;border-bottom:1px solid #6b6b75;vertical-align:top;overflow-wrap:normal}"
    ".number{text-align:right;font-variant-numeric:tabular-nums}"
    "iframe{width:100%;height:32rem;border:1px solid #6b6b75;background:#fff}"
    ":focus-visible{outline:3px solid #0b57d0;outline-offset:2px}"
    ".skip{position:absolute;left:-100rem}.skip:focus{left:1rem;top:.5rem;background:#fff;padding:.5rem}"
    "@media(max-width:30rem){dl{grid-template-columns:1fr;gap:0}dd{margin:0 0 .5rem}}"
    "@media(prefers-color-scheme:dark){body,.skip:focus,input,select,textarea{background:#17171b;color:#ececf1}"
    "a,.plain{color:#a8c7fa}button,.button{background:#a8c7fa;border-color:#a8c7fa;color:#062e6f}"
    ".plain{background:none;color:#a8c7fa}.note,.bad,pre{background:#24252c}.note{border-color:#a8c7fa}"
    ".bad{border-color:#f2b8b5}header,input,select,textarea,th,td,iframe,.events li{border-color:#9a9aa5}"
    ":focus-visible{outline-color:#a8c7fa}}";

/// What a role that has signed in finds on every page.
std::string header_html(const DeskReader& reader) {
  if (reader.role.empty()) return "<header><strong>mailroom desk</strong></header>";
  return fmt::format(
      "<header><strong>mailroom desk</strong><nav aria-label=\"Pages\"><a href=\"/\">Search</a>"
      "<a href=\"/today\">Today</a><a href=\"/status\">What is wrong</a></nav>"
      "<form method=\"post\" action=\"/sign-out\"><input type=\"hidden\" name=\"csrf\" value=\"{}\">"
      "<button class=\"plain\">Sign out {}</button></form></header>",
      html_text(reader.csrf), html_text(reader.role));
}

}  // namespace

std::string html_text(std::string_view text) {
  return templates::escaped_html(shown_text(text));
}

std::string html_lines(std::string_view text) {
  return templates::escaped_html(printable_lines(text));
}

std::string desk_policy() {
  static const auto policy = fmt::format(
      "default-src 'none'; style-src 'sha256-{}'; frame-src 'self'; form-action 'self'; base-uri 'none'; "
      "frame-ancestors 'none'",
      crypto::base64(crypto::sha256({style})));
  return policy;
}

std::string desk_document(const DeskPage& page, const DeskReader& reader) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0} – mailroom desk</title>"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<style>{1}</style></head>\n<body><a class=\"skip\" href=\"#content\">To the content</a>{2}"
      "<main id=\"content\"><h1>{0}</h1>{3}</main></body></html>\n",
      html_text(page.title), style, header_html(reader), page.body);
}

DeskPage sign_in_page(std::string_view problem, std::string_view role, std::string_view next) {
  DeskPage page{.status = problem.empty() ? 200 : 403, .title = "Sign in"};
  if (!problem.empty()) page.body = fmt::format("<p class=\"bad\" role=\"alert\">{}</p>", html_text(problem));
  page.body += fmt::format(
      "<form method=\"post\" action=\"/sign-in\"><input type=\"hidden\" name=\"next\" value=\"{}\">"
      "<p><label for=\"role\">Role of PostgreSQL</label><input id=\"role\" name=\"role\" value=\"{}\" required "
      "autocomplete=\"username\" autocapitalize=\"none\" spellcheck=\"false\"></p>"
      "<p><label for=\"password\">Password</label><input id=\"password\" name=\"password\" type=\"password\" required "
      "autocomplete=\"current-password\"></p><button>Sign in</button></form>",
      html_text(next), html_text(role));
  return page;
}

std::string search_form(std::string_view text) {
  return fmt::format(
      "<form action=\"/search\" role=\"search\"><p><label for=\"q\">Address, reference, message, Message-ID or queue id</label>"
      "<input id=\"q\" name=\"q\" type=\"search\" value=\"{}\" required autocomplete=\"off\" autocapitalize=\"none\" "
      "spellcheck=\"false\"></p><button>Search</button></form>",
      html_text(text));
}

std::string note_html(std::string_view text) {
  return fmt::format("<p class=\"note\" role=\"status\">{}</p>", html_text(text));
}

std::string facts_html(const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string list;
  for (const auto& [name, value] : facts) {
    if (!value.empty()) append_format(list, "<dt>{}</dt><dd>{}</dd>", html_text(name), html_text(value));
  }
  return list.empty() ? list : "<dl>" + list + "</dl>";
}

std::string table_html(const DeskTable& table) {
  const auto cell = [&](const char* element, std::size_t column, const std::string& text) {
    const bool is_heading = std::string_view(element) == "th";
    return fmt::format("<{}{}{}>{}</{}>", element, is_heading ? " scope=\"col\"" : "",
                       column >= table.first_number ? " class=\"number\"" : "", html_text(text), element);
  };
  auto html = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table><caption>{0}</caption><thead><tr>",
      html_text(table.caption));
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    html += cell("th", i, table.columns[i]);
  html += "</tr></thead><tbody>";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      html += cell("td", i, row[i]);
    html += "</tr>";
  }
  return html + "</tbody></table></div>";
}

}  // namespace mailroom::desk
