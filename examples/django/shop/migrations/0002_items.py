"""What the shop has to sell: the last book, and lamps."""

from django.db import migrations


def add_items(apps, schema_editor):
    item = apps.get_model('shop', 'Item')
    item.objects.create(name='book', price='12.00', stock=1)
    item.objects.create(name='lamp', price='30.00', stock=100)


class Migration(migrations.Migration):
    dependencies = [('shop', '0001_initial')]
    operations = [migrations.RunPython(add_items, migrations.RunPython.noop)]
