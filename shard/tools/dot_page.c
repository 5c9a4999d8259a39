#include "shard/tools/dot_page.h"

#include <strings.h>

/* The two libraries are those that XProf's page loads. Without them, as in a network that does not
 * reach them, the page shows the graph's source. */
static const char head[] =
    "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n<style>\n"
    "body { height: 100vh; margin: 0; font-family: sans-serif; }\n"
    "#graph { height: 95vh; width: 100%; }\n"
    "#graph svg { height: 100% !important; width: 100% !important; }\n"
    ".node, .cluster { cursor: pointer; }\n"
    ".node:hover, .cluster:hover { outline: solid 3px black; }\n"
    "</style>\n</head>\n<body>\n"
    "<script src=\"https://www.gstatic.com/external_hosted/hpcc_js_wasm/index.min.js\"\n"
    " integrity=\"sha384-LigJPbR3TOfU/Xbb+PjiN1dGJYPweLk7kiGnaMgmxnUmKWaCFKbb5tH6iLlyVhPZ\"\n"
    " crossorigin=\"anonymous\"></script>\n"
    "<script src=\"https://www.gstatic.com/external_hosted/svg_pan_zoom/svg-pan-zoom.js\">"
    "</script>\n"
    "<div id=\"graph\"></div>\n<script>\nconst data = `";

static const char tail[] =
    "`;\n"
    "const style = /stylesheet=<([^]*?)\\n>\\n/;\n"
    "const css = (data.match(style) || ['', ''])[1].replace(/\\s*data:[^,]*,/, '');\n"
    "const box = document.getElementById('graph');\n"
    "function show(svg) {\n"
    "  box.innerHTML = svg;\n"
    "  const sheet = document.createElement('style');\n"
    "  sheet.textContent = css;\n"
    "  box.appendChild(sheet);\n"
    "  if (window.svgPanZoom)\n"
    "    svgPanZoom(box.children[0], {zoomEnabled: true, dblClickZoomEnabled: false,\n"
    "                                 controlIconsEnabled: true, maxZoom: 200, minZoom: 0});\n"
    "}\n"
    "function source() {\n"
    "  const pre = document.createElement('pre');\n"
    "  pre.textContent = 'The library that draws graphs cannot be loaded.\\n\\n' + data;\n"
    "  box.replaceChildren(pre);\n"
    "}\n"
    "const wasm = window['@hpcc-js/wasm'];\n"
    "if (wasm)\n"
    "  wasm.graphviz.layout(data.replace(style, ''), 'svg', '";

void dot_page_begin(struct xp_buf *out)
{
    xp_buf_str(out, head);
}

void dot_page_end(struct xp_buf *out, const char *engine)
{
    xp_buf_str(out, tail);
    xp_buf_str(out, engine);
    xp_buf_str(out, "').then(show, source);\nelse\n  source();\n</script>\n</body>\n</html>\n");
}

static bool begins(struct xp_span s, size_t i, const char *word)
{
    size_t n = strlen(word);
    return s.n - i >= n && strncasecmp((const char *)s.p + i, word, n) == 0;
}

void dot_page_text(struct xp_buf *out, struct xp_span dot)
{
    for (size_t i = 0; i < dot.n; i++) {
        uint8_t c = dot.p[i];
        if (c == '`')
            xp_buf_str(out, "\\x60");
        else if (c == '\\')
            xp_buf_str(out, "\\\\");
        else if (c == '$' && i + 1 < dot.n && dot.p[i + 1] == '{')
            xp_buf_str(out, "\\x24");
        else if (c == '<' && (begins(dot, i, "</script") || begins(dot, i, "<script") ||
                              begins(dot, i, "<!--")))
            xp_buf_str(out, "\\x3c");
        else
            xp_buf_byte(out, c);
    }
}
