{# No two rows have the same values in these columns; nulls are equal to each other. #}
{% test unique_rows(model, columns) %}
select {{ columns | join(', ') }}, count(*) as times
from {{ model }}
group by {{ columns | join(', ') }}
having count(*) > 1
{% endtest %}

{# A number is within these bounds, or null. #}
{% test within(model, column_name, at_least, at_most=none) %}
select {{ column_name }}
from {{ model }}
where {{ column_name }} < {{ at_least }}{% if at_most is not none %} or {{ column_name }} > {{ at_most }}{% endif %}
{% endtest %}
