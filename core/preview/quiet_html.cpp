// Goes from tag to tag, and copies all that is no tag of interest byte by byte.

#include "preview/quiet_html.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <vector>

#include "base/text.hpp"

namespace mailroom::preview {
namespace {

constexpr std::string_view html_blanks = " \t\r\n\f";
/// A target that no mail has, so that the frame stays where it is.
constexpr std::string_view no_target = "#not-followed";

/// An attribute of a tag.
struct HtmlAttribute {
  std::string name;        ///< in lower case
  std::string_view whole;  ///< as it is written
  std::string_view value;  ///< without quotes
};

/// What is in a tag after its name.
struct HtmlAttributes {
  std::vector<HtmlAttribute> list{};
  std::size_t rest = 0;  ///< after the last of them: ` />`
  std::size_t end = 0;   ///< after the tag
};

/// The position of `word`, in lower case, in `text` of any case.
std::size_t find_word(std::string_view text, std::string_view word, std::size_t from) {
  const auto found = std::search(
      text.begin() + static_cast<std::ptrdiff_t>(std::min(from, text.size())), text.end(), word.begin(),
      word.end(), [](char a, char b) { return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a) == b; });
  return found == text.end() ? std::string_view::npos : static_cast<std::size_t>(found - text.begin());
}

std::string escaped_value(std::string_view text) {
  std::string escaped;
  for (const char c : text)
    c == '"' ? escaped += "&quot;" : escaped += c;
  return escaped;
}

class Quieting {
 public:
  Quieting(std::string_view html, const QuietOptions& options) : html_(html), options_(options) {}

  QuietHtml run() {
    while (at_ < html_.size()) {
      const auto tag = std::min(html_.find('<', at_), html_.size());
      copy_to(tag);
      if (at_ < html_.size()) read_markup();
    }
    return std::move(result_);
  }

 private:
  void copy_to(std::size_t end) {
    result_.html += html_.substr(at_, end - at_);
    at_ = end;
  }

  /// Leaves out what is before `end`. What is around it must not become a tag: `<<script></script>script>`.
  void drop_to(std::size_t end) {
    at_ = end;
    if (result_.html.ends_with('<') || result_.html.ends_with('/')) result_.html += "<!---->";
  }

  /// After the next `text`, or at the end.
  std::size_t after(std::string_view text, std::size_t from) const {
    const auto found = find_word(html_, text, from);
    return found == std::string_view::npos ? html_.size() : found + text.size();
  }

  void read_markup() {
    if (html_.substr(at_).starts_with("<!--")) return copy_to(after("-->", at_ + 4));
    const bool is_end = html_.substr(at_).starts_with("</");
    const auto begin = at_ + (is_end ? 2 : 1);
    auto end = begin;
    end = std::min(html_.find_first_of(" \t\r\n\f/>", end), html_.size());
    const auto name = lower_case(html_.substr(begin, end - begin));
    if (name.empty() || name.front() < 'a' || name.front() > 'z') return copy_to(at_ + 1);
    if (is_end) {
      const auto next = after(">", end);
      if (!is_one_of(name, {"form", "object", "frameset"})) return copy_to(next);
      return drop_to(next);
    }
    read_start_tag(name, end);
  }

  void read_start_tag(const std::string& name, std::size_t attributes) {
    const auto [list, rest, end] = read_attributes(attributes);
    const bool refreshes = name == "meta" && std::ranges::any_of(list, [](const auto& attribute) {
                             return attribute.name == "http-equiv";
                           });
    if (is_one_of(name, {"script", "iframe", "noembed"}))
      return drop_to(after(">", std::min(after("</" + name, end), html_.size())));
    if (refreshes || is_one_of(name, {"base", "link", "form", "object", "embed", "applet", "frame",
                                      "frameset", "param", "portal", "fencedframe"}))
      return drop_to(end);
    result_.html += html_.substr(at_, attributes - at_);
    for (const auto& attribute : list)
      write_attribute(name, attribute, list);
    result_.html += html_.substr(rest, end - rest);
    at_ = end;
    if (name != "style") return;
    const auto close = std::min(find_word(html_, "</style", at_), html_.size());
    result_.html += quiet_css(html_.substr(at_, close - at_));
    at_ = close;
  }

  /// Those from `at` on.
  HtmlAttributes read_attributes(std::size_t at) const {
    std::vector<HtmlAttribute> list;
    for (;;) {
      const auto begin = at;
      while (at < html_.size() && (html_blanks.find(html_[at]) != std::string_view::npos || html_[at] == '/'))
        ++at;
      if (at >= html_.size()) return {std::move(list), begin, html_.size()};
      if (html_[at] == '>') return {std::move(list), begin, at + 1};
      const auto name = at;
      at = std::min(html_.find_first_of(" \t\r\n\f/>=", at + 1), html_.size());
      HtmlAttribute attribute{.name = lower_case(html_.substr(name, at - name)), .whole = {}, .value = {}};
      const auto equals = html_.find_first_not_of(html_blanks, at);
      if (equals != std::string_view::npos && html_[equals] == '=') {
        at = std::min(html_.find_first_not_of(html_blanks, equals + 1), html_.size());
        const char quote = at < html_.size() && (html_[at] == '"' || html_[at] == '\'') ? html_[at] : '\0';
        const auto value = quote == '\0' ? at : at + 1;
        const auto end =
            std::min(quote == '\0' ? html_.find_first_of(" \t\r\n\f>", value) : html_.find(quote, value),
                     html_.size());
        attribute.value = html_.substr(value, end - value);
        at = quote == '\0' ? end : std::min(end + 1, html_.size());
      }
      attribute.whole = html_.substr(begin, at - begin);
      list.push_back(std::move(attribute));
    }
  }

  void write_attribute(const std::string& tag, const HtmlAttribute& attribute,
                       const std::vector<HtmlAttribute>& all) {
    const auto& name = attribute.name;
    if (name.starts_with("on") || is_one_of(name, {"srcdoc", "action", "formaction", "form", "ping", "target",
                                                   "autofocus", "autoplay", "manifest", "http-equiv"}))
      return;
    if (name == "style") return write_style(attribute);
    if (name == "href" && is_one_of(tag, {"a", "area"})) return write_link(attribute.value, all);
    if (is_one_of(name, {"src", "srcset", "imagesrcset", "background", "poster", "lowsrc", "dynsrc", "data",
                         "href", "xlink:href"}))
      return write_source(name, attribute);
    write_whole(attribute);
  }

  /// With a blank before it, which may have been missing behind one that is left out.
  void write_whole(const HtmlAttribute& attribute) {
    if (html_blanks.find(attribute.whole.front()) == std::string_view::npos) result_.html += ' ';
    result_.html += attribute.whole;
  }

  void write(std::string_view name, std::string_view value) {
    result_.html += fmt::format(" {}=\"{}\"", name, escaped_value(value));
  }

  void write_style(const HtmlAttribute& attribute) {
    const auto quiet = quiet_css(attribute.value);
    quiet == attribute.value ? write_whole(attribute) : write("style", quiet);
  }

  void write_link(std::string_view value, const std::vector<HtmlAttribute>& all) {
    const auto target = trimmed(value);
    if (target.starts_with('#')) return write("href", target);
    const auto scheme = lower_case(target.substr(0, target.find(':')));
    if (options_.follows_links && is_one_of(scheme, {"http", "https"})) {
      write("href", target);
      return write("target", "_blank");
    }
    write("href", no_target);
    const bool has_title =
        std::ranges::any_of(all, [](const auto& attribute) { return attribute.name == "title"; });
    if (!has_title) write("title", target);
  }

  void write_source(std::string_view name, const HtmlAttribute& attribute) {
    const auto url = trimmed(attribute.value);
    if (url.starts_with('#')) return write(name, url);
    const bool is_list = name.ends_with("srcset");
    if (const auto kept = is_list ? kept_list(url) : kept_url(url)) write(name, *kept);
  }

  /// The URL that is loaded in place of `url`; nullopt: none is.
  std::optional<std::string> kept_url(std::string_view url) {
    const auto lower = lower_case(url.substr(0, 16));
    if (lower.starts_with("data:")) return std::string(url);
    if (lower.starts_with("cid:") && options_.file_of) return options_.file_of(url.substr(4));
    const bool is_remote =
        lower.starts_with("http:") || lower.starts_with("https:") || lower.starts_with("//");
    if (!is_remote) return std::nullopt;
    ++result_.remote;
    if (!options_.loads_images) return std::nullopt;
    return lower.starts_with("//") ? "https:" + std::string(url) : std::string(url);
  }

  /// A list of images for several sizes: as it is, or none of them.
  std::optional<std::string> kept_list(std::string_view list) {
    if (find_word(list, "//", 0) == std::string_view::npos) return std::nullopt;
    ++result_.remote;
    return options_.loads_images ? std::optional<std::string>(list) : std::nullopt;
  }

  std::string quiet_css(std::string_view css) {
    std::string quiet;
    std::size_t at = 0;
    while (at < css.size()) {
      const auto url = find_word(css, "url(", at);
      const auto import = find_word(css, "@import", at);
      const auto next = std::min({url, import, css.size()});
      quiet += css.substr(at, next - at);
      if (next == css.size()) break;
      if (next == import) {
        quiet += "/**/";  // so that what is around it does not become one
        at = std::min(css.find(';', next), css.size() - 1) + 1;
        continue;
      }
      const auto end = std::min(css.find(')', next), css.size());
      constexpr std::string_view around = " \t\r\n\"'";
      auto value = css.substr(next + 4, end - next - 4);
      value.remove_prefix(std::min(value.find_first_not_of(around), value.size()));
      value = value.substr(0, value.find_last_not_of(around) + 1);
      const auto kept = value.starts_with('#') ? std::optional<std::string>(value) : kept_url(value);
      quiet += fmt::format("url({}", kept ? css_text(*kept) : "'data:,'");
      at = end;
    }
    return quiet;
  }

  /// In the quotes that an attribute in double quotes may have.
  static std::string css_text(const std::string& url) {
    return url.find_first_of("'\\\n") == std::string::npos ? fmt::format("'{}'", url) : "'data:,'";
  }

  std::string_view html_;
  const QuietOptions& options_;
  std::size_t at_ = 0;
  QuietHtml result_;
};

}  // namespace

QuietHtml quiet_html(std::string_view html, const QuietOptions& options) {
  return Quieting(html, options).run();
}

}  // namespace mailroom::preview
