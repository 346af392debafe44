#pragma once

#include <string_view>

namespace spillway {

// The page's style: light and dark, paper, from 400 pixels on. Colours are those of Okabe and Ito, which people with
// any colour vision tell apart (https://jfly.uni-koeln.de/color/).
inline constexpr std::string_view kPageStyle = R"css(
:root{--paper:#fff;--ink:#1b1b1b;--soft:#575757;--rule:#dcdcdc;--card:#f6f6f4;--link:#0b5c94;
--good:#00664a;--part:#8a5a00;--bad:#a83c00;
--c0:#d55e00;--c1:#e69f00;--c2:#56b4e9;--c3:#cc79a7;--c4:#009e73;--c5:#0072b2;--c6:#8a8a8a;--c7:#c9bb1f}
@media (prefers-color-scheme:dark){:root{--paper:#16181a;--ink:#ececec;--soft:#ababab;--rule:#3a3d40;--card:#202326;
--link:#7cc3f2;--good:#4fd0a5;--part:#f0b445;--bad:#ff9457;--c5:#3b9ddd;--c6:#9c9c9c;--c7:#f0e442}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:1360px;margin:0 auto;padding:16px}
h1{font-size:1.5rem;line-height:1.25;margin:.6em 0 .3em}
h2{font-size:1.2rem;margin:2.2em 0 .3em;padding-top:.8em;border-top:1px solid var(--rule)}
h3{font-size:1rem;margin:.2em 0}
a{color:var(--link)}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
.soft{color:var(--soft)}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:4px 14px;padding:0;margin:.6em 0}
.panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,360px),1fr));gap:18px 28px;margin:.8em 0}
.panels.one{grid-template-columns:minmax(0,620px)}
figure{margin:0;break-inside:avoid}
figcaption{font-weight:600}
figure svg{display:block;width:100%;max-width:620px;height:auto}
.legend{display:flex;flex-wrap:wrap;gap:2px 16px;padding:0;margin:.5em 0;list-style:none;font-size:.9rem}
.sample{width:14px;height:12px;vertical-align:-1px;margin-right:5px}
.sample.wide{width:30px}
text{fill:var(--ink);font:12px system-ui,sans-serif}
text.tick{fill:var(--soft);font-size:11px}
text.value{font-size:11px}
text.within{font-size:10px;fill:#000}
text.hollow{fill:var(--soft)}
text.within.hollow{fill:var(--ink)}
.grid{stroke:var(--rule)}
.axis{stroke:var(--soft)}
.line{fill:none;stroke-width:2}
.dashed{stroke-dasharray:5 4}
.c0{color:var(--c0)}.c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}
.c4{color:var(--c4)}.c5{color:var(--c5)}.c6{color:var(--c6)}.c7{color:var(--c7)}
.line{stroke:currentColor}
.filled{fill:currentColor;stroke:currentColor}
rect.hollow,path.hollow,circle.hollow{fill:currentColor;fill-opacity:.18;stroke:currentColor;stroke-width:1.2}
rect.filled{stroke:var(--paper);stroke-width:.6}
.verdict{font-weight:600;white-space:nowrap}
.holds{color:var(--good)}.part{color:var(--part)}.not{color:var(--bad)}.unjudged{color:var(--soft)}
.claims{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,420px),1fr));gap:14px;margin:1em 0}
.claim{background:var(--card);border:1px solid var(--rule);border-radius:6px;padding:10px 14px;break-inside:avoid;
min-width:0}
.claim p{margin:.35em 0}
dl{margin:.5em 0;display:grid;grid-template-columns:6.2em 1fr;gap:3px 10px;font-size:.93rem}
dt{color:var(--soft)}dd{margin:0;min-width:0;overflow-wrap:anywhere}
pre{background:var(--card);border:1px solid var(--rule);border-radius:6px;padding:8px 10px;margin:.4em 0;
overflow-x:auto;font:.82rem/1.45 ui-monospace,monospace}
.claim pre{background:var(--paper)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.9rem;margin:.5em 0}
th,td{padding:3px 10px;border-bottom:1px solid var(--rule);text-align:right;vertical-align:top;
font-variant-numeric:tabular-nums}
th:first-child,td:first-child,th.left,td.left{text-align:left}
summary{cursor:pointer;color:var(--link);padding:2px 0}
@media (max-width:520px){main{padding:10px}dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.4em}
th,td{padding:3px 6px}}
@media print{:root{--paper:#fff;--ink:#000;--soft:#444;--rule:#bbb;--card:#fff;--link:#000;--good:#00664a;--part:#8a5a00;
--bad:#a83c00;--c5:#0072b2;--c6:#8a8a8a;--c7:#c9bb1f}
body{font-size:10.5pt}main{max-width:none;padding:0}nav{display:none}pre{white-space:pre-wrap;overflow-wrap:anywhere}
.panels{grid-template-columns:repeat(2,1fr)}.claims{grid-template-columns:1fr}}
)css";

}  // namespace spillway
